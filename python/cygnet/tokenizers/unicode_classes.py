"""The character classes of the format's reference libraries, spelled for the `regex` package (insides of a [...] set)."""

# White_Space property: what \s means to the reference; the regex package's own \s would add U+001C to U+001F.
SPACE = r"\t-\r \x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000"
# \w of UTS #18.
WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
