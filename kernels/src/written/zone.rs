//! Time zones: by how much their clocks are ahead of UTC, and since when.
//!
//! The one idea: a zone is a list of words in memory, one for each time its clocks were set, in ascending order; the first is for what
//! was before. A fixed offset is a list of one word. Whoever knows the database makes the list; who uses it finds a place in it by
//! halves, and knows no database.

/// What a zone's clocks are from a second on, until the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first second, since 1970; in 40 bits. Of the first span it does not matter.
    pub from: i64,
    /// Seconds ahead of UTC; in 24 bits.
    pub east: i32,
}

impl Span {
    /// As a word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.from << 24) as u64 | self.east as u64 & 0xff_ffff
    }

    /// Of a word.
    #[inline(always)]
    pub const fn of(word: u64) -> Span {
        Span { from: word as i64 >> 24, east: (word as i32) << 8 >> 8 }
    }
}

/// A zone: its [`Span`]s, as words. Between two of them lie more than two days.
pub trait Zone: Copy {
    /// How many, at least one.
    fn count(self) -> u64;
    /// The word of one.
    fn word(self, i: u64) -> u64;

    /// One of the spans.
    #[inline(always)]
    fn span(self, i: u64) -> Span {
        Span::of(self.word(i))
    }

    /// The span of a second: of UTC, or of the zone's own clocks, and then the last that began by then.
    #[inline(always)]
    fn find(self, seconds: i64, own: bool) -> u64 {
        // Halved alike whatever is found, so that no branch depends on it.
        let (mut low, mut left) = (0, self.count());
        while left > 1 {
            let half = left / 2;
            let Span { from, east } = self.span(low + half);
            let begun = from + i64::from(if own { east } else { 0 }) <= seconds;
            low += half & u64::from(begun).wrapping_neg();
            left -= half;
        }
        low
    }

    /// How far its clocks are ahead of UTC at an instant.
    #[inline(always)]
    fn offset_at_utc(self, seconds: i64) -> i32 {
        self.span(self.find(seconds, false)).east
    }

    /// How far its clocks are ahead of UTC when they say something; `None` if they say it twice, or never. So are texts read.
    #[inline(always)]
    fn offset_of_local(self, seconds: i64) -> Option<i32> {
        let i = self.find(seconds, true);
        let here = self.span(i);
        let again = i > 0 && seconds < here.from + i64::from(self.span(i - 1).east);
        let never = i + 1 < self.count() && seconds >= self.span(i + 1).from + i64::from(here.east);
        (!again && !never).then_some(here.east)
    }

    /// How far its clocks are ahead of UTC when they say something: the second time if they say it twice, and as before if they were
    /// set past it. So are values cast.
    #[inline(always)]
    fn offset_for_local(self, seconds: i64) -> i32 {
        self.span(self.find(seconds, true)).east
    }
}

/// As many seconds ahead of UTC, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub i32);

impl Fixed {
    /// UTC.
    pub const UTC: Fixed = Fixed(0);
}

impl Zone for Fixed {
    #[inline(always)]
    fn count(self) -> u64 {
        1
    }

    #[inline(always)]
    fn word(self, _: u64) -> u64 {
        Span { from: 0, east: self.0 }.word()
    }
}

impl Zone for &[u64] {
    #[inline(always)]
    fn count(self) -> u64 {
        self.len() as u64
    }

    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        self[i as usize]
    }
}
