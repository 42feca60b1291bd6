"""Statistics on labelled cubes: decomposition, inference, planning, dependence."""
