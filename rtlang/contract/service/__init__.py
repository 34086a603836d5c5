"""What a target offers to programs and servers, and reports to operators."""
