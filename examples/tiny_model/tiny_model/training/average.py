"""The mean of the weights of two checkpoints of the embedded model, as a checkpoint.

    python -m tiny_model.training.average BEFORE AFTER --output FOLDER

Of two ends of one run the mean often keeps what each is better at.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tiny_model.training.batches import Encoder
from tiny_model.training.network import Network, Shape, load_llama
from tiny_model.training.run_files import TOKENIZER_FILES, check_output, put, read_checkpoint, write_checkpoint


def average(first: Path, second: Path, output: Path, share: float = 0.5) -> None:
    """Write a checkpoint whose weights are `share` of those of `second`, the rest of those of `first`, summed in float32.

    Raises:
        ValueError: a file of either cannot be read or is of another model, their tokenizers are not the same, or `output` holds a
            checkpoint; says so.
        OSError: `output` cannot be written to.
    """
    check_output(output)
    weights, tokenizers = zip(*(read_checkpoint(folder) for folder in (first, second)), strict=True)
    if tokenizers[0]["tokenizer.json"] != tokenizers[1]["tokenizer.json"]:
        raise ValueError(f"the tokenizers of {first} and {second} are not the same")
    network = Network(Shape())
    means = {name: (1 - share) * weight + share * weights[1][name] for name, weight in weights[0].items()}
    load_llama(network, means)
    output.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        put(output / name, tokenizers[0][name])
    write_checkpoint(network, Encoder(output), output)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; without `arguments`, with those of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=Path, metavar="BEFORE", help="checkpoint folder")
    parser.add_argument("second", type=Path, metavar="AFTER", help="checkpoint folder")
    parser.add_argument("--share", type=float, default=0.5, help="of the second in the mean, 0 to 1 (default: 0.5)")
    parser.add_argument("--output", type=Path, required=True, help="checkpoint folder to write")
    given = parser.parse_args(arguments)
    if not 0 <= given.share <= 1:
        parser.error("--share is from 0 to 1")
    if given.output.resolve() in (given.first.resolve(), given.second.resolve()):
        parser.error(f"--output {given.output} would overwrite a checkpoint that is read")
    try:
        average(given.first, given.second, given.output, given.share)
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
