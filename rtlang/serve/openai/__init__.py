"""The OpenAI API as pure translations: request maps to graphs, events to response maps. No I/O."""
