"""For fork servers that preload it: the agent of the kill trial, compiled."""

from tests.support.programs import kill_trial

kill_trial.warm()
