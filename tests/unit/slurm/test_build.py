"""The script that builds Slurm from source, with sources of a few lines: what it packs, what it says where it fails."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "roles/slurm/files/build.sh"
CONFIGURE = """\
#!/bin/sh
for argument; do case $argument in
  --prefix=*) prefix=${argument#*=} ;;
  --with-munge=*) munge=${argument#*=}; ls "$munge/lib/libmunge" || exit 1 ;;
esac; done
[ ! -e broken ] || { echo "configure: error: no C compiler" >&2; exit 1; }
printf '%s\\n' "$@" | grep -v -e --with-munge > arguments
# Where a file .la says that a library lies elsewhere, libtool takes the place where it found it into what it links.
if [ -e "${munge:-}/lib/libmunge.la" ] || [ -e careless ]; then echo "$munge" >> arguments; fi
find . -name Makefile -exec sed -i "s|@prefix@|\\$(DESTDIR)$prefix|g" {} +
"""
# What is installed holds what configure was told.
PART = """\
all:

install-strip:
\tmkdir -p @prefix@/{folder}
\tcp ../../arguments @prefix@/{folder}/{name}
\ttouch @prefix@/{folder}/{name}.la
"""
SLURM = """\
all:

install-strip:
\tmkdir -p @prefix@/sbin @prefix@/lib/slurm @prefix@/include
\tcp ../arguments @prefix@/sbin/slurmd
\ttouch @prefix@/include/slurm.h @prefix@/lib/slurm/auth_munge.la
\tfor plugin in {plugins}; do echo $$plugin > @prefix@/lib/slurm/$$plugin.so; done
"""


def packed(folder: Path, name: str, files: dict[str, str]) -> Path:
    """A source archive as upstream's, below a folder with its version."""
    root = folder / f"{name}-1.0"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    archive = folder / f"{name}.source"
    with tarfile.open(archive, "w:gz") as target:
        target.add(root, root.name)
    return archive


def build(folder: Path, plugins: str = "auth_munge cgroup_v2", **more: str) -> subprocess.CompletedProcess[str]:
    parts = {"libmunge": "lib", "munge": "bin", "munged": "sbin", "mungekey": "sbin"}
    munge = {f"src/{name}/Makefile": PART.format(name=name, folder=where) for name, where in parts.items()}
    # As the archive of a tag: what makes configure is run first.
    munge |= {
        "Makefile": "all:\n",
        "bootstrap": f"#!/bin/sh\ncat > configure <<'END'\n{CONFIGURE}END\nchmod +x configure\n",
    }
    slurm = {"configure": CONFIGURE, "src/Makefile": SLURM.format(plugins=plugins), **more}
    arguments = [packed(folder, "munge", munge), packed(folder, "slurm", slurm)]
    output = folder / "cache" / "built.tar.gz"
    output.parent.mkdir()
    command = ["sh", str(SCRIPT), *map(str, arguments), str(folder / "prefix"), str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_both_lie_in_one_prefix_that_is_packed_with_its_path(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with tarfile.open(tmp_path / "cache/built.tar.gz") as built:
        names = {Path("/", name) for name in built.getnames() if built.getmember(name).isfile()}
        assert {member.uid for member in built.getmembers()} == {0}
    programs = {"lib/libmunge", "bin/munge", "sbin/munged", "sbin/mungekey", "sbin/slurmd"}
    plugins = {"lib/slurm/auth_munge.so", "lib/slurm/cgroup_v2.so"}
    assert names == {tmp_path / "prefix" / name for name in programs | plugins}
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["build.log", "built.tar.gz"]


def test_what_is_in_the_prefix_is_left_alone_since_daemons_run_from_it(tmp_path: Path) -> None:
    (tmp_path / "prefix/sbin").mkdir(parents=True)
    (tmp_path / "prefix/sbin/slurmd").write_text("runs")
    (tmp_path / "prefix/complete").touch()
    assert build(tmp_path).returncode == 0
    assert (tmp_path / "prefix/sbin/slurmd").read_text() == "runs"
    # Nor is it taken for what was built.
    assert told(tmp_path, "slurmd") != "runs"


def told(folder: Path, program: str) -> str:
    """What configure was told when that was built."""
    with tarfile.open(folder / "cache/built.tar.gz") as built:
        file = built.extractfile(str(folder / "prefix/sbin" / program).lstrip("/"))
        assert file
        return file.read().decode()


def test_daemons_of_root_are_built_as_distributions_build_them(tmp_path: Path) -> None:
    assert build(tmp_path).returncode == 0
    for program, binding in (("munged", "now"), ("slurmd", "lazy")):
        options = told(tmp_path, program).splitlines()
        (linked,) = (option for option in options if option.startswith("LDFLAGS="))
        assert linked.startswith(f"LDFLAGS=-pie -Wl,-z,relro,-z,{binding}")
        (flags,) = (option for option in options if option.startswith("CFLAGS="))
        assert {"-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fPIE"} <= set(flags.split())
        assert "--disable-static" in options
        # Each is for the prefix, with libraries where others look for them, and not built to be worked on.
        prefix = tmp_path / "prefix"
        assert {f"--prefix={prefix}", f"--libdir={prefix}/lib", "--disable-dependency-tracking"} <= set(options)
    # What this machine has by chance, others may lack.
    assert {"--without-hwloc", "--without-json", "--without-libcurl"} <= set(options)


def test_munge_uses_the_places_of_the_system_and_one_library_for_its_keys(tmp_path: Path) -> None:
    assert build(tmp_path).returncode == 0
    options = set(told(tmp_path, "munged").splitlines())
    assert {"--sysconfdir=/etc", "--localstatedir=/var", "--with-runstatedir=/run"} <= options
    assert "--with-crypto-lib=openssl" in options


def test_slurm_has_what_the_role_runs_and_nothing_of_what_a_machine_happens_to_have(tmp_path: Path) -> None:
    assert build(tmp_path).returncode == 0
    options = told(tmp_path, "slurmd").splitlines()
    assert "--sysconfdir=/etc/slurm" in options
    assert {"--without-rpath", "--disable-slurmrestd", "--disable-sview", "--disable-x11", "--disable-debug"} <= set(
        options
    )
    without = [option for option in options if option.startswith("--without-")]
    for library in ("mysql_config", "json", "jwt", "yaml", "hdf5", "hwloc", "nvml", "pmix", "ucx", "lua", "libcurl"):
        assert without.count(f"--without-{library}") == 1
    # These two have no option of their own.
    assert {"ac_cv_lib_numa_numa_available=no", "ac_cv_lib_lz4_LZ4_compress_destSize=no"} <= set(options)
    (linked,) = (option for option in options if option.startswith("LDFLAGS="))
    # It finds the library of MUNGE where it will be.
    assert linked.endswith(f"-Wl,-rpath,{tmp_path}/prefix/lib")
    with tarfile.open(tmp_path / "cache/built.tar.gz") as built:
        assert {(member.gid, member.uname, member.gname) for member in built.getmembers()} == {(0, "", "")}


def test_the_whole_log_stays_and_says_the_last_line_where_no_error_is_named(tmp_path: Path) -> None:
    done = build(tmp_path, Makefile="all:\n", **{"src/Makefile": "all:\n\t@echo out of memory; exit 1\n"})
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert "out of memory" in (tmp_path / "cache/build.log").read_text()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"broken": ""}, "configure: error: no C compiler\n"),
        ({"plugins": "auth_munge"}, "build.sh: the plugin cgroup_v2 was not built; look for the headers of"),
        ({"careless": ""}, "build.sh: "),
    ],
)
def test_what_fails_is_the_last_word_and_leaves_nothing(tmp_path: Path, more: dict[str, str], words: str) -> None:
    done = build(tmp_path, **more)
    assert done.returncode != 0
    assert done.stderr.startswith(words)
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["build.log"]
