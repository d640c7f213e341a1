# core/text
