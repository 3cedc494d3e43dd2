"""Tests the reader of disassemblies."""

import unittest

from gathers import gathers, verdict

LISTING = """
0000000000001000 <bowstring::cpu::intrinsics::gather::gather>:
    1000:\tvpgatherdd (%rax,%zmm1,4),%zmm2{%k1}
    1007:\tvgatherdpd (%rax,%ymm1,8),%zmm2{%k1}

0000000000002000 <<bowstring::cpu::bitmap::CountOnes as bowstring::cpu::vectorise::Loop>::run>:
    2000:\tvpgatherdq (%rax,%ymm1,1),%zmm2{%k1}
    2007:\tvpopcntq %zmm2,%zmm2

0000000000003000 <arrow_select::take::take_native>:
    3000:\tvpgatherqq (%rax,%zmm1,1),%zmm2{%k1}

0000000000004000 <bowstring::gather>:
    4000:\tcall 1000 <bowstring::cpu::intrinsics::gather::gather>
"""


class Gathers(unittest.TestCase):
    def test_each_is_counted_where_it_is(self):
        found = gathers(LISTING.splitlines())
        self.assertEqual(sorted(found.values()), [1, 1, 2])
        self.assertEqual(list(verdict(found)), ["<bowstring::cpu::bitmap::CountOnes as bowstring::cpu::vectorise::Loop>::run"])


if __name__ == "__main__":
    unittest.main()
