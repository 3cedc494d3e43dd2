//! The order in which an emulation runs the waves of a launch, and the lanes of a wave: random, from a seed.
//! A GPU promises none, so a result that depends on it is a bug, and another seed shows it.

/// A random sequence of numbers: xorshift64.
#[derive(Clone, Copy)]
pub(super) struct Order(u64);

impl Order {
    /// Makes a sequence; each pair of numbers gives a different one.
    pub const fn new(seed: u64, of: u64) -> Order {
        let mixed = (seed ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Order((mixed ^ mixed >> 27) | 1)
    }

    /// Makes the order of a launch of the entry of this name.
    pub fn of_launch(seed: u64, name: &str, waves: u64) -> Order {
        let named =
            name.bytes().fold(waves, |all, byte| all.rotate_left(8).wrapping_mul(31) ^ u64::from(byte));
        Order::new(seed, named)
    }

    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The numbers below `count`, each once: from a random one on, in random equal steps around the circle.
    pub fn walk(&mut self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let most = count.max(1);
        let (mut at, mut step) = (self.draw() % most, self.draw() % most);
        while common_divisor(step, most) != 1 {
            step += 1;
        }
        (0..count).map(move |_| {
            let now = at;
            at = (at + step) % most;
            now
        })
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
