"""Extensions of the notation of Lark that llguidance and xgrammar share: options of rules, schemas and grammars inside rules."""
