"""The benchmark `rtlang bench agents`: traces of agents, replayed by clients of every door against a server."""
