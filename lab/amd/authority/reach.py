"""The part of `machine.Machine` that runs instructions which access other lanes or memory."""

import exceptions
from pcode import Program
from values import Bits, Unsupported, Value


class Reaching:
    """A mixin that uses the machine's registers and operands."""

    def arrays(self):
        def vgpr(lane, register):
            return Vector(self.vectors, lane, register)
        return {"VGPR": vgpr}

    def run_lane_read(self, made):
        names = self.scalar_names()
        offset = made.src0.offset
        if offset < 256:
            raise Unsupported("a lane of a scalar")
        names["SRC0"] = Bits(offset - 256, 32)
        if hasattr(type(made), "src1"):
            names["S1"] = Bits(self.operand(made, made.src1.offset, 32, 0, "B32"), 32)
        names["D0"] = Bits(0, 32)
        Program(names, arrays=self.arrays()).run(self.text(made.op.name))
        # For some of these the decoder has a vector field, although the register is scalar.
        self.put_scalar(made.vdst.offset % 256, 32, names["D0"].number)

    def run_lane_write(self, made):
        names = self.scalar_names()
        for i, source in enumerate((made.src0, made.src1)):
            names[f"S{i}"] = Bits(self.operand(made, source.offset, 32, 0, "B32"), 32)
        names["VDST"] = Bits(made.vdst.offset - 256, 32)
        Program(names, arrays=self.arrays()).run(self.text(made.op.name))

    def run_ds(self, made):
        if made.op.name != "DS_BPERMUTE_B32":
            raise Unsupported(made.op.name)
        names = self.scalar_names()
        for name, number in (("ADDR", made.addr.offset - 256), ("DATA0", made.data0.offset - 256),
                             ("VDST", made.vdst.offset - 256), ("OFFSET", made.offset0 | made.offset1 << 8)):
            names[name] = Bits(number, 32, "u")
        Program(names, arrays=self.arrays()).run(self.text(made.op.name))

    # Memory.

    def run_smem(self, made):
        if self.family == "rdna4":
            offset, bits = made.ioffset, 24
        else:
            offset, bits = made.offset, 21
        address = self.scalar(made.sbase.offset, 64) + Value("i", bits, offset).number
        if self.family != "cdna" or made.soffset_en:
            address += self.operand(made, made.soffset.offset, 32, 0, "B32")
        self.access(made, address, "SDATA", self.scalar_result(made), None)

    def scalar_result(self, made):
        bits = self.bits(made, "sdata")
        return lambda: 0, lambda value: self.put_scalar(made.sdata.offset, bits, value), bits

    def access(self, made, address, name, result, data):
        """Accesses memory at one address, which follows the documents' words, because the pseudo-code does
        not define it."""
        exceptions.use("addresses")
        text = self.text(made.op.name)
        old, put, bits = result
        names = {name: Bits(old(), bits), "ADDR": Bits(address, 64, "u"), "RETURN_DATA": Bits(0, 128)}
        for unused in ("SADDR", "OFFSET", "SBASE", "SOFFSET", "sgpr_base", "offset", "v_addr", "s_saddr", "ioffset"):
            names.setdefault(unused, Bits(0, 64))
        if data is not None:
            names["DATA"] = Bits(data, 128)
            names.setdefault("VDATA", Bits(data, 128))
            if "STORE" in made.op.name:
                names[name] = Bits(data, 128)
        program = Program(names, memory=self.memory)
        for function in ("CalcGlobalAddr", "CalcScalarGlobalAddr"):
            program.functions[function] = lambda *_: Value("u", 64, address)
        program.run(text)
        return put(names["RETURN_DATA" if "ATOMIC" in made.op.name else name].number)

    def run_global(self, made):
        name = made.op.name
        newest = self.family == "rdna4"
        address_field = "vaddr" if newest else "addr"
        bits = 24 if newest else 13
        offset = Value("i", bits, made.ioffset if newest else made.offset).number
        saddr = made.saddr.offset
        absent = saddr == 124 and self.family != "cdna" or saddr == 127
        data_field = "vsrc" if newest else "data"
        returns = "LOAD" in name or "ATOMIC" in name and (
            made.th & 1 if newest else made.sc0 if self.family == "cdna" else made.glc)
        loads = []
        for lane in self.running():
            register = getattr(made, address_field).offset - 256
            base = self.vector(register, lane, 64) if absent else self.scalar(saddr, 64) + self.vectors[register][lane]
            loads.append((lane, (base + offset) & (1 << 64) - 1))
        for lane, address in loads:
            data, to = None, made.vdst.offset - 256
            size = self.bits(made, "vdst") if "LOAD" in name else 64 if "X2" in name or "64" in name else 32
            if "LOAD" not in name:
                data = self.vector(getattr(made, data_field).offset - 256, lane, 128)
            put = (lambda value, lane=lane: self.put_vector(to, lane, size, value)) if returns else lambda value: None
            old = (lambda lane=lane: self.vector(to, lane, max(size, 32))) if returns else lambda: 0
            self.access(made, address, "VDATA", (old, put, max(size, 32)), data)


class Vector:
    """One lane of a vector register, as a store of bits."""

    kind = None
    width = 32

    def __init__(self, vectors, lane, register):
        self.vectors, self.lane, self.register = vectors, lane, register

    def whole(self):
        return Value("b", 32, self.vectors[self.register][self.lane])

    def put(self, low, width, value):
        assert low == 0 and width >= 32
        self.vectors[self.register][self.lane] = value & 0xFFFFFFFF
