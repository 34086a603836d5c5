"""Drafts: tokens that are expected to follow, computed together with the last known token and verified by sampling."""
