"""Pages of other engines, over TCP: a server of the pages in the tiers of this process, and a tier that fetches from such servers."""
