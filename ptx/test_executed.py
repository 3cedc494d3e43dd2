"""`python3 -m unittest discover -s ptx`: tests how instructions of the hardware are told from those of the PTX."""

import unittest

from executed import weighed, with_lines

PTX = """.version 7.4
.address_size 64
.visible .entry made_up(
	.param .u64 made_up_param_0
)
{
	.reg .b64 	%rd<3>;
	ld.param.u64 	%rd1, [made_up_param_0];
$L__BB0_1:
	ld.global.nc.b64 	%rd2, [%rd1];
	add.s64 	%rd2, %rd2, 1;
	@%p1 bra 	$L__BB0_1;
	ret;
}
"""


class Executed(unittest.TestCase):
    def test_each_instruction_gets_its_line(self):
        lines = with_lines(PTX).splitlines()
        at = {lines[i + 1].split()[0]: line for i, line in enumerate(lines) if line.startswith("\t.loc")}
        numbers = {"ld.param.u64": 8, "ld.global.nc.b64": 10, "add.s64": 11, "@%p1": 12, "ret;": 13}
        self.assertEqual(at, {name: f"\t.loc 1 {number} 0" for name, number in numbers.items()})
        self.assertEqual([line for line in lines if not line.startswith(("\t.loc", ".file"))], PTX.splitlines())

    def test_copies_of_a_block_share_its_executions(self):
        # The loop is written twice, and adds take two instructions.
        loop = [(10, "LDG"), (11, "IADD3"), (11, "IADD3"), (12, "BRA")]
        found = weighed(PTX.splitlines(), [(8, "LDC"), *loop, *loop, (13, "EXIT")])
        weights = {8: 1.0, 10: 1.0, 11: 2.0, 12: 1.0, 13: 1.0}
        self.assertEqual({line: sum(w for at, w in found if at == line) for line, _ in found}, weights)

    def test_a_block_is_copied_as_often_as_all_of_its_single_instructions(self):
        found = weighed(PTX.splitlines(), [(10, "LDG"), (11, "IADD3"), (12, "BRA"), (12, "BRA")])
        self.assertEqual({weight for _, weight in found}, {1.0})


if __name__ == "__main__":
    unittest.main()
