//! Time zones: how far their clocks are ahead of UTC, and since when.
//!
//! The one idea: a zone is a list of words in memory, one for each time its clocks were set, in ascending
//! order; the first word is for the time before that. A fixed offset is a list of one word. The host makes
//! the list from a database of time zones; readers and writers search in it by halves, and know no database.

/// The offset of a zone's clocks from a second on, until the next span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first second, since 1970, in 40 bits. In the first span it has no effect.
    pub from: i64,
    /// The number of seconds ahead of UTC, in 24 bits.
    pub east: i32,
}

impl Span {
    /// Packs the span into one word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.from << 24) as u64 | self.east as u64 & 0xff_ffff
    }

    /// Unpacks a span from its word.
    #[inline(always)]
    pub const fn of(word: u64) -> Span {
        Span { from: word as i64 >> 24, east: (word as i32) << 8 >> 8 }
    }
}

/// A zone: a list of [`Span`]s, as words. Two of them are more than two days apart.
pub trait Zone: Copy {
    /// Returns the number of spans, at least one.
    fn count(self) -> u64;
    /// Returns the word of span `i`.
    fn word(self, i: u64) -> u64;

    /// Returns span `i` of the zone.
    #[inline(always)]
    fn span(self, i: u64) -> Span {
        Span::of(self.word(i))
    }

    /// Returns the index of the span of a second of UTC or, if `own`, of the zone's own clocks: the last span
    /// that began by then.
    #[inline(always)]
    fn find(self, seconds: i64, own: bool) -> u64 {
        // Halves the list in the same way whatever the result, so that no branch depends on it.
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

    /// Returns how far the zone's clocks are ahead of UTC at an instant.
    #[inline(always)]
    fn offset_at_utc(self, seconds: i64) -> i32 {
        self.span(self.find(seconds, false)).east
    }

    /// Returns how far the zone's clocks are ahead of UTC when they show a time; `None` if they show it
    /// twice, or never. Texts are read by this rule.
    #[inline(always)]
    fn offset_of_local(self, seconds: i64) -> Option<i32> {
        let i = self.find(seconds, true);
        let here = self.span(i);
        let again = i > 0 && seconds < here.from + i64::from(self.span(i - 1).east);
        let never = i + 1 < self.count() && seconds >= self.span(i + 1).from + i64::from(here.east);
        (!again && !never).then_some(here.east)
    }

    /// Returns how far the zone's clocks are ahead of UTC when they show a time. If they show it twice, the
    /// second time counts; if they were set past it, the offset before that. Casts of values follow this
    /// rule.
    #[inline(always)]
    fn offset_for_local(self, seconds: i64) -> i32 {
        self.span(self.find(seconds, true)).east
    }
}

/// A zone whose clocks are always the same number of seconds ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub i32);

impl Fixed {
    /// The zone without an offset: UTC.
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
