"""`python3 -m unittest discover -s benches`: tests the tables used for the predictions, and the model, on
made-up kernels."""

import sys
import unittest
from pathlib import Path

import predict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ptx"))
import static  # noqa: E402


def sass(*instructions):
    """`nvdisasm -c -hex` of an entry: text, the scoreboard that it sets (7: none), those that it waits for."""
    yield ".text.made_up:"
    for place, (text, sets, waits) in enumerate(instructions):
        yield f"        /*{16 * place:04x}*/                   {text} ;            /* 0x0000000000000000 */"
        yield f"                                                     /* 0x{(sets << 5 | waits << 11) << 41:016x} */"


def entry(*instructions):
    found = static.Entry()
    for name, text, high in static.instructions(sass(*instructions)):
        assert name == "made_up"
        found.add(text, high)
    return found


LOAD, USE, STORE = "LDG.E.CONSTANT R4, desc[UR6][R2.64]", "IADD3 R8, R4, R5, RZ", "STG.E.128 desc[UR6][R2.64], R4"


class Static(unittest.TestCase):
    def test_loads_are_in_flight_until_their_scoreboard_is_waited_for(self):
        found = entry((LOAD, 2, 0), (f"@P0 {LOAD}", 2, 0), (USE, 7, 0b100), (LOAD, 2, 0), (USE, 7, 0b100), (STORE, 7, 0))
        self.assertEqual(found.in_flight(), "2x4")
        self.assertEqual((found.code, dict(found.loaded), dict(found.stored)), (6, {4: 3}, {16: 1}))
        # Waiting for another scoreboard leaves these loads in flight.
        self.assertEqual(entry((LOAD, 2, 0), (USE, 7, 0b1000), (LOAD, 3, 0), (USE, 7, 0b1100)).in_flight(), "2x4")

    def test_only_a_jump_that_is_always_taken_ends_a_stretch(self):
        wide = "LDG.E.NA.128.CONSTANT R4, desc[UR6][R2.64]"
        for jump, flight in [("BRA `(.L_x_1)", "1x16, 1x4"), ("@P0 BRA `(.L_x_1)", "1x16+1x4"), ("NOP", "1x16+1x4")]:
            self.assertEqual(entry((LOAD, 0, 0), (jump, 7, 0), (wide, 1, 0), ("EXIT", 7, 0)).in_flight(), flight, jump)

    def test_warps_that_fit(self):
        fits = {16: 64, 32: 64, 33: 48, 40: 48, 48: 40, 49: 32, 64: 32, 65: 24, 128: 16}
        self.assertEqual({registers: static.resident(registers) for registers in fits}, fits)


class Model(unittest.TestCase):
    def predict(self, loads="16.0x4", flights="4x4", issued="10.0", touched="8.0", warps=40, a_wave="2048"):
        tables = predict.Tables.__new__(predict.Tables)
        tables.launches = {"made up": [["made_up", "1", a_wave, loads, issued, issued, touched, touched]]}
        tables.entries = {"made_up": {"warps": warps, "flights": flights, "ratio": 1.0}}
        return predict.predict(tables, "made up", 1 << 28, 0, 0.0, predict.EXPECTED)

    def test_each_limit_binds_where_it_should(self):
        self.assertEqual(self.predict().limit(), "memory")
        self.assertEqual(self.predict(issued="90.0").limit(), "issue")
        self.assertEqual(self.predict(loads="160.0x4").limit(), "latency")
        # No operation is faster than its bytes.
        found = self.predict()
        self.assertGreater(found.seconds, 8 * 2**28 / predict.EXPECTED.copy)

    def test_more_in_flight_or_more_waves_hide_latency(self):
        slow = self.predict(loads="160.0x4")
        self.assertLess(self.predict(loads="160.0x4", flights="8x4").seconds, 0.7 * slow.seconds)
        self.assertLess(self.predict(loads="160.0x4", warps=64).seconds, 0.8 * slow.seconds)

    def test_the_bytes_of_the_targets(self):
        tables = predict.Tables()
        for name, bytes_a_row in [
            ("filter Int32, 50 % uniform", 6.11),
            ("filter Int32, 1 % uniform", 0.125 + 4 * 0.0773 + 0.04),
            ("take Int32, random", 40),
            ("take Int64, random", 44),
            ("null_count", 0.125),
        ]:
            self.assertAlmostEqual(predict.bound(tables, name), bytes_a_row, 2, name)

    def test_the_files_are_what_the_tables_give(self):
        for file, text in predict.documents().items():
            self.assertEqual(file.read_text(), text, file)

    def test_every_prediction_is_of_a_bench(self):
        lines = [line.split("\t") for line in predict.TABLE.read_text().splitlines()[1:]]
        self.assertEqual({len(cells) for cells in lines}, {7})
        for column in [0, 1]:
            self.assertEqual(len({cells[column] for cells in lines}), len(lines))
        for _, _, rows, bytes_a_row, expected, best, worst in lines:
            self.assertLess(0, float(best))
            self.assertLessEqual(float(best), float(expected))
            self.assertLessEqual(float(expected), float(worst))
            self.assertGreater(int(rows) * float(bytes_a_row), 0)


if __name__ == "__main__":
    unittest.main()
