"""Fair shares between principals: flows of requests, their virtual times, and their turns in a step."""
