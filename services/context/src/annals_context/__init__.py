"""Annals context: what should the model see next, in N tokens?"""
