"""oracle_build.py counts what libtpu's compiler estimates: kernels of loops as often as they run. The text is cut down from what libtpu 0.0.51 writes."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "tools"))

PROGRAM = """HloModule jit_f, is_scheduled=true

%body.1 (arg: (s32[], f32[8,128])) -> (s32[], f32[8,128]) {
  %fusion.1 = f32[8,128]{1,0:T(8,128)} fusion(%x), kind=kLoop, calls=%c, backend_config={"estimated_cycles":"100","flag_configs":[]}
}

%cond.1 (arg: (s32[], f32[8,128])) -> pred[] {
  %constant.3 = s32[]{:T(128)} constant(10)
  ROOT %compare.0 = pred[]{:T(512)} compare(%i, %constant.3), direction=LT
}

%cond.2 (arg: (s32[], f32[8,128])) -> pred[] {
  ROOT %compare.1 = pred[]{:T(512)} compare(%i, %limit), direction=LT
}

ENTRY %main (p: f32[8,128]) -> f32[8,128] {
  %constant.5 = s32[]{:T(128)} constant(0)
  %fusion.2 = f32[8,128]{1,0:T(8,128)} fusion(%p), kind=kLoop, calls=%d, backend_config={"estimated_cycles":"7"}
  %while = (s32[]{:T(128)}, f32[8,128]{1,0:T(8,128)}) while(%tuple), condition=%cond.1, body=%body.1, metadata={source_line=5}
  ROOT %copy = f32[8,128]{1,0:T(8,128)} copy(%r), backend_config={"estimated_cycles":"20"}
}
"""


def test_loops_count_as_often_as_they_run(capsys):
    import oracle_build
    assert oracle_build.cycles(PROGRAM) == 7 + 10 * 100 + 20
    assert not capsys.readouterr().err
    assert oracle_build.cycles(PROGRAM.replace("condition=%cond.1", "condition=%cond.2")) == 127
    assert "unknown trips" in capsys.readouterr().err


def test_one_program_that_cannot_be_compiled_is_left_out(monkeypatch, capsys):
    import oracle_build

    def open_chip(chip):
        def compiled(path):
            raise RuntimeError("async-update instruction should have 1 operands")
        return compiled

    monkeypatch.setattr(oracle_build.libtpu_ask, "open_chip", open_chip)
    oracle_build.answers("v6e", [pathlib.Path("a.mlir"), pathlib.Path("b.mlir")])
    said = capsys.readouterr()
    assert not said.out and "a: async-update" in said.err and "b: async-update" in said.err
