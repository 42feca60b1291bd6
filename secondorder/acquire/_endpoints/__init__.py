"""One file per kind of endpoint: how a call becomes bytes, and what an answer means.

A file ``openai_chat.py`` declares the kind ``openai-chat`` in a constant ``ENDPOINT``; nothing else names it.
"""
