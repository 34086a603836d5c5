"""`python -m rtlang_bench.ray_serve`: the router of whole programs against Ray Serve's own routers."""
