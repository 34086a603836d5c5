"""What tests of the embedded model's training share: the checkpoint in the package, and the state of a run of a small network."""

from pathlib import Path

from tiny_model.training.network import Network, Shape
from tiny_model.training.optimizer import Optimizer
from tiny_model.training.run_files import Progress, write_state

TINY = Path(__file__).parents[3] / "rtlang" / "tiny"
SMALL = Shape(hidden_size=32, num_layers=1, num_q_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=48)


def write_small_state(state: Path, progress: Progress) -> None:
    """Write the state of a run of an untrained small network into a folder."""
    write_state(state / "training.pt", Optimizer(Network(SMALL)), progress)
