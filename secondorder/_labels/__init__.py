"""Labels: verdict tables, the response-law cube, its files, and small frozen results."""
