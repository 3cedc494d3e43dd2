//! Splits text into words and punctuation, each with its line; drops comments and white space.

pub struct Token<'a> {
    pub text: &'a str,
    pub line: u32,
}

pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let word = |c: u8| c.is_ascii_alphanumeric() || b"_$%.".contains(&c);
    let (mut all, mut i, mut line) = (vec![], 0, 1);
    while i < bytes.len() {
        let start = i;
        match bytes[i] {
            b'\n' => {
                line += 1;
                i += 1;
                continue;
            }
            c if c.is_ascii_whitespace() => {
                i += 1;
                continue;
            }
            b'/' if bytes.get(i + 1) == Some(&b'/') => {
                while i < bytes.len() && bytes[i] != b'\n' {
                    i += 1;
                }
                continue;
            }
            c if word(c) => {
                // A mnemonic may contain `::`, as in `ld.global.L1::no_allocate`.
                while i < bytes.len()
                    && (word(bytes[i])
                        || bytes[i..].starts_with(b"::")
                        || bytes[..i].ends_with(b":") && i > start && bytes[i] == b':')
                {
                    i += 1;
                }
            }
            _ => i += 1,
        }
        all.push(Token { text: &text[start..i], line });
    }
    all
}
