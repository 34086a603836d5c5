"""The engines that `rtlang bench` runs beside ours."""
