"""What generations of one run may spend, and which of their candidates go on."""
