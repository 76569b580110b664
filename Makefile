# statrec. `make help` lists what there is to make.
#
# src/MODULES lists the folders of src/; each becomes one static library.

VERSION := 0.2.0
MODE    ?= release
MPI     ?= 0
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
DESTDIR ?=
CC      ?= gcc
# What is built runs here; what is installed, on any x86-64-v2.
PORTABLE := $(and $(filter install install-programs,$(MAKECMDGOALS)),$(filter release,$(MODE)),$(filter x86_64%,$(shell $(CC) -dumpmachine)))
ARCH    ?= $(if $(PORTABLE),levels,native)
BUILD   ?= build/$(MODE)$(if $(filter levels,$(ARCH)),-levels)
JOBS    ?= $(shell nproc 2>/dev/null || echo 1)
DNNL    ?= 1
V       ?= 0

# CLOSURE_x: the libraries of the module x; TESTED_x: those of tests/x; MODULES (tools/modules.awk).
$(foreach line,$(shell awk -f tools/modules.awk src/MODULES),$(eval $(subst +, ,$(line))))
MAINS     := src/cli/statrec.c src/plot/statplot.c
# Linked into each program: it runs before the libraries of the program.
START     := src/base/program/start.c
# Linked into each program and test of MODE=coverage: processes that end by _exit are counted.
COUNTED   := $(if $(filter coverage,$(MODE)),tests/coverage/coverage_exit.c)
SOURCES   := $(filter-out $(MAINS) $(START),$(shell find src -name '*.c' | LC_ALL=C sort))
# Sources of a module: those of its folder, but for folders that are modules themselves.
srcs_of    = $(filter-out $(patsubst %,src/%/%.c,$(filter $(1)/%,$(MODULES))),$(filter src/$(1)/%.c,$(SOURCES)))
LIBRARIES := $(foreach m,$(filter-out cli,$(MODULES)),$(if $(call srcs_of,$(m)),$(m)))
# Modules whose loops over numbers take the time of a training.
KERNELS   := $(filter moments engine/amx engine/gemm engine/conv engine/ops norm/kernels train/optim,$(MODULES))
# Modules that wait for files or print: no loop of theirs over numbers takes the time of a run.
LIGHT     := $(filter format journal hdf5 hdf5/% runfile runfile/% base/% batch parse score data task ranks train diagnose table plot cli \
  $(filter-out analysis/columns analysis/bootstrap,analysis $(filter analysis/%,$(MODULES))),$(MODULES))
TEST_FOLDERS := $(sort $(patsubst tests/%/,%,$(filter $(foreach m,$(MODULES),tests/$(m)/),$(wildcard tests/*/))))

OPT_release  := -O3 -g1 -DNDEBUG
OPT_debug    := -O1 -g3
OPT_asan     := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_double   := -O2 -g1 -DREAL_DOUBLE
OPT_coverage := -O1 -g -DNDEBUG --coverage
OPT_fuzz     := -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_tsan     := -O1 -g1 -fsanitize=thread -fno-omit-frame-pointer
ifeq ($(OPT_$(MODE)),)
$(error MODE is one of release, debug, asan, double, coverage, fuzz, tsan; got '$(MODE)')
endif
ifneq ($(filter fuzz tsan,$(MODE)),)
override CC := $(filter ccache,$(CC)) clang
override DNNL := 0
endif
# ThreadSanitizer does not see accesses of more than 16 bytes.
ifeq ($(MODE),tsan)
override ARCH := x86-64-v2
endif
ifeq ($(MODE),double)
override DNNL := 0
endif

HDF5        := $(shell pkg-config --exists hdf5-serial 2>/dev/null && echo hdf5-serial || echo hdf5)
HDF5_CFLAGS := $(shell pkg-config --cflags $(HDF5) 2>/dev/null)
HDF5_LIBS   := $(shell pkg-config --libs $(HDF5) 2>/dev/null)
ZIP_CFLAGS  := $(shell pkg-config --cflags libzip 2>/dev/null)
ZIP_LIBS    := $(shell pkg-config --libs libzip 2>/dev/null || echo -lzip)
PCRE_CFLAGS := $(shell pkg-config --cflags libpcre2-8 2>/dev/null)
PCRE_LIBS   := $(shell pkg-config --libs libpcre2-8 2>/dev/null || echo -lpcre2-8)
BLAS_CFLAGS := $(shell pkg-config --cflags openblas 2>/dev/null)
BLAS_LIBS   := $(shell pkg-config --libs openblas 2>/dev/null || echo -lopenblas)

WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
ifneq ($(filter fuzz tsan,$(MODE)),)
WARN     += -Wno-missing-field-initializers -Wno-pass-failed
endif
CFLAGS   ?=
CPPFLAGS += -Iinclude -Isrc -D_POSIX_C_SOURCE=200809L -DSTATREC_VERSION='"$(VERSION)"' -DSTATREC_PREFIX='"$(PREFIX)"' $(HDF5_CFLAGS) $(ZIP_CFLAGS) $(PCRE_CFLAGS) $(BLAS_CFLAGS)
# ARCH=levels: programs and libraries for the first of these, libraries of KERNELS for the others too.
LEVELS   := $(if $(filter levels,$(ARCH)),x86-64-v2 x86-64-v3 x86-64-v4)
HIGHER   := $(wordlist 2,9,$(LEVELS))
ALL_CFLAGS := -std=c11 $(OPT_$(MODE)) -march=$(or $(firstword $(LEVELS)),$(ARCH)) -ffp-contract=fast -fno-math-errno -fopenmp -fPIC $(WARN) $(CFLAGS)
RECORDER_LIBS ?= $(HDF5_LIBS) -lisal -lm
LIBS     := $(HDF5_LIBS) -llapacke $(BLAS_LIBS) $(ZIP_LIBS) $(PCRE_LIBS) -lunistring -lisal -lz -lm
ifeq ($(DNNL),1)
CPPFLAGS += -DUSE_DNNL
LIBS     += -ldnnl
endif
# Training in several processes, with the MPI whose mpicc is found (Open MPI, MPICH). Only src/ranks is
# compiled otherwise; programs are linked by mpicc.
LINKER := $(CC)
ifeq ($(MPI),1)
MPICC  ?= mpicc
MPIRUN ?= $(subst mpicc,mpirun,$(MPICC))
LINKER := OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC)
endif
RANKS_CC := $(LINKER) $(if $(filter 1,$(MPI)),-DUSE_MPI)
LDFLAGS  += -Wl,--as-needed
# Links a program in a third of the time.
GOLD     := $(if $(findstring /,$(shell $(CC) -print-prog-name=ld.gold)),-fuse-ld=gold)

Q := $(if $(filter 1,$(V)),,@)

lib_of   = $(BUILD)/lib/lib$(subst /,-,$(1)).a
libs_of  = $(foreach l,$(filter $(LIBRARIES),$(CLOSURE_$(1))),$(call lib_of,$(l)))
test_libs_of = $(foreach l,$(filter $(LIBRARIES),$(TESTED_$(1))),$(call lib_of,$(l)))
objs     = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

ANALYSES := $(patsubst analyses/%.c,%,$(wildcard analyses/*.c))
PROGRAMS := $(addprefix $(BUILD)/bin/,statrec statplot $(ANALYSES))
TESTS    := $(foreach l,$(TEST_FOLDERS),$(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/$(l)/test_*.c)))
FUZZERS  := $(patsubst tests/fuzz/fuzz_%.c,%,$(filter-out tests/fuzz/fuzz_data.c tests/fuzz/fuzz_hdf5.c,$(wildcard tests/fuzz/fuzz_*.c)))
BENCHES  := $(patsubst bench/%.c,$(BUILD)/bench/%,$(filter-out $(if $(filter 1,$(MPI)),,bench/bench_ranks.c),$(wildcard bench/bench_*.c)))

# A change of a program does not wait for manual and completion, which only what is installed needs (and make check).
all: $(PROGRAMS) $(addprefix level-,$(HIGHER)) $(BUILD)/lib/libstatrec.so $(BUILD)/lib/libstatrec.a $(if $(LEVELS),man completion) ## build every program and the recorder library
.PHONY: all

# -- libraries and programs --------------------------------------------------------------------

# Before anything is compiled: a header that is missing is told with its package, in a tenth of a second.
WHOLE  := $(filter all tests unit quick install install-programs bench check-installed fuzz-targets,$(or $(MAKECMDGOALS),all))
NEEDED := $(if $(WHOLE)$(filter lib,$(MAKECMDGOALS)),hdf5.h isa-l/crc.h) \
  $(if $(WHOLE),lapacke.h cblas.h zip.h zlib.h pcre2.h unistr.h $(if $(filter 1,$(DNNL)),dnnl.h))
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@$(if $(strip $(NEEDED)),printf '#include <%s>\n' $(NEEDED) | $(CC) $(CPPFLAGS) -DPCRE2_CODE_UNIT_WIDTH=8 -x c -E - >/dev/null 2>&1 || { CC='$(CC)' CPPFLAGS='$(subst ','\'',$(CPPFLAGS))' sh tests/install_packages.sh missing $(if $(WHOLE),,lib); exit 1; })
	@printf '%s\n' '$(subst ','\'',$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LIGHT_$(MODE)))' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
# Other libraries link everything anew, and compile nothing.
$(BUILD)/link_flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(LDFLAGS) $(GOLD) $(LIBS) $(RECORDER_LIBS))' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# LIGHT modules compile in three quarters of the time with -O1; the second flag has them multiply and add in one rounding
# where -O3 does. Test programs call what is tested: their own lines need no optimizer, and compile in half the time.
LIGHT_release := -O1 -fexpensive-optimizations
LIGHT_double  := -O1
LIGHT_SOURCES := $(MAINS) $(START) $(wildcard analyses/*.c) $(foreach m,$(LIGHT),$(call srcs_of,$(m)))
own_flags = $(if $(filter $(LIGHT_SOURCES),$(1)),$(LIGHT_$(MODE)))$(if $(findstring /test_,$(1)),-O1)

# private: build/*/flags, which the first object makes, is the same for all of them
$(BUILD)/obj/tests/%.o: private CPPFLAGS += -Itests
$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(if $(Q),$(info $()  CC   $<))
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(call own_flags,$<) -MMD -MP -c $< -o $@

$(BUILD)/ranks_flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(RANKS_CC))' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(BUILD)/obj/src/ranks/%.o: src/ranks/%.c $(BUILD)/flags $(BUILD)/ranks_flags
	@mkdir -p $(@D)
	$(if $(Q),$(info $()  CC   $<))
	$(Q)$(RANKS_CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# The commit goes into one object only, so that a commit does not rebuild everything.
GIT := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
$(BUILD)/git: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(GIT)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(BUILD)/obj/src/train/setup.o: $(BUILD)/git
$(BUILD)/obj/src/train/setup.o: private CPPFLAGS += -DSTATREC_GIT='"$(GIT)"'

define module_rule
$(call lib_of,$(1)): $(call objs,$(call srcs_of,$(1)))
	@mkdir -p $$(@D)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$^
endef
$(foreach l,$(LIBRARIES),$(eval $(call module_rule,$(l))))

# With ARCH=levels the programs' libraries are shared ones in a directory that only they look into, beside
# those of KERNELS for higher levels: the loader takes the best that the processor knows (ld.so(8), glibc-hwcaps).
SHARED_DIR := $(BUILD)/lib/statrec
LOWEST_DIR ?= $(SHARED_DIR)
shareds_of  = $(foreach l,$(filter $(LIBRARIES),$(1)),$(SHARED_DIR)/libstatrec-$(subst /,-,$(l)).so)
define shared_rule
$(call shareds_of,$(1)): $(call objs,$(call srcs_of,$(1))) $(patsubst $(SHARED_DIR)/%,$(LOWEST_DIR)/%,$(call shareds_of,$(filter-out $(1),$(CLOSURE_$(1))))) $(BUILD)/link_flags
	@mkdir -p $$(@D)
	$(Q)$(LINKER) -shared -Wl,-soname,$$(@F) -Wl,-z,defs -Wl,-Bsymbolic-functions $(ALL_CFLAGS) $(LDFLAGS) $(GOLD) $$(filter %.o %.so,$$^) $(LIBS) -o $$@
endef
$(foreach l,$(LIBRARIES),$(eval $(call shared_rule,$(l))))
shareds: $(call shareds_of,$(KERNELS))
level-%: $(call shareds_of,$(KERNELS)) FORCE
	$(Q)$(MAKE) --no-print-directory ARCH=$* BUILD=$(BUILD)/$* SHARED_DIR=$(SHARED_DIR)/glibc-hwcaps/$* LOWEST_DIR=$(SHARED_DIR) shareds
.PHONY: shareds

# What runs programs of ours waits for all of them: the loader would take a library that is half written.
$(BUILD)/help/statrec $(BUILD)/man/man1/statrec.1 $(BUILD)/completions/statrec: | $(addprefix level-,$(HIGHER))

# What a program of a module is linked with. RPATH, not RUNPATH: it holds for what the libraries need, too.
program_libs = $(if $(LEVELS),$(call shareds_of,$(CLOSURE_$(1))),$(libs_of))
SHARED_PATH  = $(if $(LEVELS),-Wl$(comma)--disable-new-dtags -Wl$(comma)-rpath$(comma)'$$ORIGIN/../lib/statrec')
comma       := ,

# libstatrec for other people's loops: the record layer and the few base files under it. ABI is the
# number of its binary interface, SO_FILE the file that the links of an installed tree lead to.
ABI          := 1
SONAME       := libstatrec.so.$(ABI)
SO_FILE      := $(SONAME).$(VERSION)
STATREC_OBJS := $(call objs,$(foreach m,$(filter-out base base/% format,$(CLOSURE_runfile/repair)),$(call srcs_of,$(m))) $(addprefix src/base/,status.c file_kind.c descriptor.c globs.c output_file.c containers/map.c containers/vector.c))
$(BUILD)/lib/libstatrec.so: $(STATREC_OBJS) src/record/libstatrec.map $(BUILD)/link_flags
	@mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-z,nodelete -Wl,-soname,$(SONAME) -Wl,--version-script=src/record/libstatrec.map \
	  $(ALL_CFLAGS) $(LDFLAGS) $(STATREC_OBJS) $(RECORDER_LIBS) -o $@
	$(Q)ln -sf $(@F) $(@D)/$(SONAME)
lib: $(BUILD)/lib/libstatrec.so $(BUILD)/lib/libstatrec.a ## build the recorder library alone, which is all that other programs and Python need
.PHONY: lib

# One object, in which only names of the interface are global: none of ours meets one of the host's.
OBJCOPY ?= objcopy
$(BUILD)/lib/libstatrec.a: $(STATREC_OBJS)
	@mkdir -p $(@D)
	$(Q)$(LD) -r $(STATREC_OBJS) -o $(@:.a=.o)
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='sr_*' $(@:.a=.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $(@:.a=.o)

LINK = $(Q)$(LINKER) $(ALL_CFLAGS) $(LDFLAGS) $(GOLD) $(SHARED_PATH) $(filter %.o,$^) $(filter %.a %.so,$^) $(LIBS) -o $@

$(BUILD)/bin/statrec: $(call objs,$(START) $(COUNTED) src/cli/statrec.c $(call srcs_of,cli)) $(call program_libs,cli) $(BUILD)/link_flags
	@mkdir -p $(@D)
	$(LINK)

# A statrec whose calls and allocations fail on demand, for tests.
FAULTY_WRAPS := $(foreach f,malloc calloc realloc aligned_alloc strdup,-Wl,--wrap=$(f))
$(BUILD)/faulty/statrec: $(call objs,tests/faulty/faulty_calls.c $(START) $(COUNTED) src/cli/statrec.c $(call srcs_of,cli)) $(call libs_of,cli)
	@mkdir -p $(@D)
	$(Q)$(LINKER) $(ALL_CFLAGS) $(LDFLAGS) $(GOLD) $(FAULTY_WRAPS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -o $@

# The analyses once more, for statplot and tests, and statplot for tests: main() of stat-NAME is stat_NAME_main() there.
LINKED := $(patsubst %,$(BUILD)/obj/linked/%.o,$(ANALYSES))
$(BUILD)/obj/linked/%.o: $(BUILD)/obj/analyses/%.o
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) --redefine-sym main=$(subst -,_,$*)_main $< $@
$(BUILD)/obj/linked/statplot.o: $(BUILD)/obj/src/plot/statplot.o
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) --redefine-sym main=statplot_main $< $@

$(BUILD)/lib/liblinked.a: $(LINKED) $(BUILD)/obj/linked/statplot.o
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/bin/statplot: $(call objs,$(START) $(COUNTED) src/plot/statplot.c) $(LINKED) $(call program_libs,plot) $(BUILD)/link_flags
	@mkdir -p $(@D)
	$(LINK)

$(addprefix $(BUILD)/bin/,$(ANALYSES)): $(BUILD)/bin/%: $(BUILD)/obj/analyses/%.o $(call objs,$(START) $(COUNTED)) $(call program_libs,table) $(BUILD)/link_flags
	@mkdir -p $(@D)
	$(LINK)

# -- tests -------------------------------------------------------------------------------------

# The commands for their tests: statrec's main() is statrec_main() there.
CLI_TESTED := $(BUILD)/obj/linked/statrec.o $(call objs,$(call srcs_of,cli))
$(BUILD)/obj/linked/statrec.o: $(BUILD)/obj/src/cli/statrec.o
	@mkdir -p $(@D)
	$(Q)$(OBJCOPY) --redefine-sym main=statrec_main $< $@

# Helpers that all tests share.
$(BUILD)/lib/libtesting.a: $(call objs,$(wildcard tests/testing/*.c))
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Rooms whose tests run programs: with a test the programs are made, so that it never runs older ones.
RUN_PROGRAMS := hdf5 runfile analysis diagnose table plot
$(addprefix $(BUILD)/tests/train/,test_torture test_torture_checkpoints): | $(PROGRAMS) $(BUILD)/faulty/statrec

define test_rule
$(BUILD)/tests/$(1)/%: $(BUILD)/obj/tests/$(1)/%.o $(call objs,$(filter-out $(wildcard tests/$(1)/test_*.c),$(wildcard tests/$(1)/*.c)) $(COUNTED)) $(BUILD)/lib/libtesting.a $(if $(filter analysis plot,$(1)),$(BUILD)/lib/liblinked.a) $(if $(filter cli,$(1)),$(CLI_TESTED)) $(call test_libs_of,$(1)) $(if $(filter $(RUN_PROGRAMS),$(1)),| $(PROGRAMS))
	@mkdir -p $$(@D)
	$(Q)$(LINKER) $(ALL_CFLAGS) $(LDFLAGS) $(GOLD) $$(filter %.o,$$^) $$(filter %.a,$$^) -lcmocka $(LIBS) -o $$@
endef
$(foreach l,$(TEST_FOLDERS),$(eval $(call test_rule,$(l))))

tests: $(TESTS) $(PROGRAMS) $(BUILD)/faulty/statrec ## build the test programs of this MODE
.PHONY: tests

unit: tests ## run the test programs of this MODE
	$(Q)sh tests/run_unit.sh $(TESTS)
.PHONY: unit

# Targets of fuzzing: linked with libFuzzer in MODE=fuzz, with a program that replays files in others.
FUZZ_SHARED := $(call objs,tests/fuzz/fuzz.c tests/fuzz/fuzz_data.c tests/fuzz/fuzz_hdf5.c src/cli/command_frame.c $(wildcard src/cli/score/score_*.c))
FUZZ_MAIN   := $(if $(filter fuzz,$(MODE)),,$(call objs,tests/fuzz/replay.c))
$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) $(FUZZ_MAIN) $(call libs_of,cli)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(if $(FUZZ_MAIN),,-fsanitize=fuzzer) $(LDFLAGS) $(GOLD) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -o $@

FUZZ_SECONDS ?= 60
fuzz: ## clang's libFuzzer on every reader, FUZZ_SECONDS=60 each, FUZZ=NAMES: only these; then make fuzz-reach
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=fuzz fuzz-targets
	$(Q)status=0; sh tests/fuzz.sh build/fuzz/fuzz $(FUZZ_SECONDS) $(or $(FUZZ),$(FUZZERS)) || status=1; \
	$(MAKE) --no-print-directory fuzz-reach && exit $$status
fuzz-reach: ## percentage of each reader's lines that the corpus of fuzzing and its finds reach
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=coverage fuzz-targets
	$(Q)sh tests/fuzz_reach.sh build/coverage build/fuzz/fuzz/found $(or $(FUZZ),$(FUZZERS))
fuzz-merge: ## small finds of make fuzz that reach new code into its corpus
	$(Q)sh tests/fuzz_merge.sh build/fuzz/fuzz 500 $(or $(FUZZ),$(FUZZERS))
fuzz-targets: $(addprefix $(BUILD)/fuzz/,$(FUZZERS))
replay: fuzz-targets ## what fuzzing found and began from, once more
	$(Q)sh tests/replay.sh $(BUILD)/fuzz $(FUZZERS)
.PHONY: fuzz fuzz-merge fuzz-reach fuzz-targets replay

# Where the user did not say -j: a make of ours takes every processor, or JOBS of them.
PARALLEL = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

check: ## install what is missing, build, run all quick tests (ten minutes of two cores)
	$(Q)sh tests/install_packages.sh check
	$(Q)$(MAKE) --no-print-directory check-installed
check-installed:
	$(Q)sh tests/layers.sh
	$(Q)sh tests/outputs.sh
	$(Q)sh tests/citations.sh
	$(Q)MAKE='$(MAKE)' sh tests/lost_objects.sh
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release all man completion tests
	$(Q)sh tests/symbols.sh build/release
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) --output-sync=target MODE=release \
	  check-python check-unit check-cli check-double check-replay check-pages
# Side by side, the longest that has one process first; each tells what it did when it is done. What is installed here
# is the build for this processor; check-all installs one for any, with three compilations of every kernel.
check-unit:
	$(Q)$(MAKE) --no-print-directory unit
check-double:
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=double unit-double
check-replay:
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release replay
check-cli:
	$(Q)JOBS=$(JOBS) sh tests/run_cli.sh build/release
check-python:
	$(Q)sh tests/run_python.sh build/release
check-pages:
	$(Q)sh tests/check_manual.sh build/release
	$(Q)bash tests/check_completion.sh build/release
	$(Q)MAKE='$(MAKE)' PREFIX='$(PREFIX)' ARCH=native sh tests/install.sh build/release
.PHONY: check-unit check-double check-replay check-cli check-python check-pages
check-all: check ## everything of check, the same tests under the address sanitizer, both wheels, torture, ThreadSanitizer, valgrind, MPICH (nightly)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=asan all tests
	$(Q)$(MAKE) --no-print-directory MODE=asan unit replay
	$(Q)JOBS=$(JOBS) sh tests/run_cli.sh build/asan
	$(Q)sh tests/run_python.sh build/asan
	$(Q)MAKE='$(MAKE)' PREFIX='$(PREFIX)' sh tests/install.sh build/release
	$(Q)$(MAKE) --no-print-directory check-wheel
	$(Q)$(or $(PYTHON),python3) -c 'import torch' 2>/dev/null || { echo 'watched trainings: skipped: no torch'; exit 0; }; \
	$(MAKE) --no-print-directory check-watched
	$(Q)$(MAKE) --no-print-directory torture
	$(Q)$(MAKE) --no-print-directory night
	$(Q)$(MAKE) --no-print-directory check-aarch64
	$(Q)$(MAKE) --no-print-directory check-sanitizers
	$(Q)$(MAKE) --no-print-directory check-mpich
	$(Q)$(MAKE) --no-print-directory check-slurm
# Each ends within an hour, and goes on where it was stopped: NIGHT='--seed 7 --percent 10'.
night: ## hostile files, host programs, losses of power, kills, a world that changes: a seeded script for each (an hour each at most)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release all
	$(Q)status=0; for script in hostile hosts worlds powerloss kills; do sh tests/$$script.sh build/release $(NIGHT) || status=1; done; exit $$status
.PHONY: night
# Of asan only the row whose processes are ours: allocations that fail, kills, failing calls.
torture: ## every place where a run may be killed, fail or be damaged (an hour or two)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release all tests
	$(Q)sh tests/torture.sh build/release
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=asan all tests
	$(Q)TORTURE_PLACES=100 sh tests/torture.sh build/asan training
	$(Q)$(MAKE) --no-print-directory torture-ranks
	$(Q)$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$$((1200 / $(words $(FUZZERS))))
torture-ranks:
	$(Q)command -v mpicc >/dev/null && command -v mpirun >/dev/null || { echo 'torture: ranks that die: skipped: no MPI'; exit 0; }; \
	$(MAKE) --no-print-directory $(PARALLEL) MPI=1 BUILD=build/release-mpi build/release-mpi/bin/statrec && \
	STATREC_TORTURE=$${TORTURE_PLACES:-20} sh tests/run_mpi.sh build/release-mpi rank_dies_anywhere
.PHONY: torture torture-ranks
check-mpi: ## with MPI=1: train in 1 to 4 processes under mpirun
	$(Q)test '$(MPI)' = 1 || { echo 'make: check-mpi wants MPI=1' >&2; exit 2; }
	$(Q)sh tests/install_packages.sh mpi
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MPI=1 $(BUILD)/bin/statrec $(BUILD)/bin/stat-distance $(BUILD)/faulty/statrec
	$(Q)MPIRUN='$(MPIRUN)' sh tests/run_mpi.sh $(BUILD)
check-mpich: ## check-mpi with MPICH (Debian's mpich and libmpich-dev, beside Open MPI)
	$(Q)command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null || \
	{ echo 'check-mpich: skipped: no MPICH (apt-get install mpich libmpich-dev)'; exit 0; }; \
	$(MAKE) --no-print-directory MPI=1 MPICC=mpicc.mpich BUILD=build/release-mpich check-mpi
check-slurm: ## check-mpi under Slurm on two nodes that are namespaces of this machine (root; Debian's slurm-wlm and munge)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MPI=1 BUILD=build/release-mpi build/release-mpi/bin/statrec
	$(Q)sh tests/slurm_nodes.sh sh tests/run_mpi.sh build/release-mpi srun srun_killed_rank srun_lost_node sbatch_requeued srun_alone \
	|| { [ $$? -eq 77 ] && exit 0 || exit 1; }
.PHONY: check-mpi check-mpich check-slurm
# For every submission: the modules whose tests are quick, without those that run whole programs.
check-asan: ## the quicker half of the test programs under the address sanitizer
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=asan unit-quick
.PHONY: check check-installed check-all check-asan

# What continuous integration runs after `check`: processes under MPI wait for each other, and the others compile.
check-more: check-analysed check-ranks
check-analysed:
	$(Q)$(MAKE) --no-print-directory analyze
	$(Q)$(MAKE) --no-print-directory check-asan
check-ranks:
	$(Q)$(MAKE) --no-print-directory MPI=1 check-mpi
.PHONY: check-more check-analysed check-ranks

# Layers and optimizers against PyTorch, with all libraries at hand.
MODEL_VECTORS := $(BUILD)/tests/train/test_model_vectors
QUICK_TESTS := $(foreach l,base text score parse engine norm nets decode data,$(filter $(BUILD)/tests/$(l)/%,$(TESTS))) $(MODEL_VECTORS)
unit-quick: $(QUICK_TESTS)
	$(Q)sh tests/run_unit.sh $(QUICK_TESTS)
.PHONY: unit-quick

# Only the layers that compute in `real` have something to say in the double build.
DOUBLE_TESTS := $(filter $(BUILD)/tests/engine/% $(BUILD)/tests/norm/% $(BUILD)/tests/nets/% $(BUILD)/tests/decode/%,$(TESTS)) $(MODEL_VECTORS)
unit-double: $(DOUBLE_TESTS)
	$(Q)sh tests/run_unit.sh $(DOUBLE_TESTS)
.PHONY: unit-double

# For a first look after a change: all test programs but those that take longer than a second of a core (SLOW_TESTS), and
# one case of the command line for each thing that a user does first.
SLOW_TESTS := test_abi_structs test_advice test_alpha_figure test_amgm_figure test_analysis_long test_axes test_batchmix_terms \
  test_checkpoints test_compare test_controls test_conv test_counts test_custom_scalars test_cut test_damage \
  test_declared_figures test_diagnose test_every_model test_exp_fast test_extreme test_faults test_feature_power \
  test_figure_controls test_figure_values_runs test_flips test_float_text test_forms test_gemm test_growing \
  test_guard test_guard_input test_guard_sites test_headers test_language_models test_limits test_long_runs \
  test_many_files test_observed_marks test_own_metrics test_passes test_power test_recover_whole \
  test_reference_loop test_reference_norms test_report test_report_folder test_run test_run_evaluation test_run_spectra \
  test_running test_shard_groups test_spike test_spoilt test_statplot test_statplot_figures test_swmr \
  test_synth_images test_torture test_torture_checkpoints test_transformer_xl test_translate test_watched test_would_bn
QUICK_CASES := statrec_help 'list_*' train_same_bytes train_table train_wrong_names info_values check_files figure_steps
quick: all tests ## the most important tests, a minute of two cores
	$(Q)sh tests/layers.sh
	$(Q)sh tests/outputs.sh
	$(Q)sh tests/citations.sh
	$(Q)sh tests/symbols.sh $(BUILD)
	$(Q)sh tests/run_unit.sh $(filter-out $(foreach t,$(SLOW_TESTS),%/$(t)),$(TESTS))
	$(Q)sh tests/run_cli.sh $(BUILD) $(QUICK_CASES)
.PHONY: quick

# Of the slow programs those whose threads compute; none that limits its own address space, which the tools take.
SANITIZED := $(filter-out $(foreach t,test_file_bytes $(filter-out test_conv test_gemm test_every_model test_running test_translate,$(SLOW_TESTS)),%/$(t)),$(TESTS))
SANITIZER_tsan     := MODE=tsan
# Without oneDNN: the code that it generates reads beyond its own buffers, and has no name to suppress it by.
SANITIZER_memcheck := MODE=debug ARCH=x86-64-v3 DNNL=0 BUILD=build/memcheck
check-sanitizers: check-tsan check-memcheck ## data races (ThreadSanitizer) and uninitialised reads (valgrind) in test programs and trainings (an hour each at most)
check-tsan check-memcheck: check-%:
	$(Q)sh tests/sanitizers.sh $* || { [ $$? -eq 77 ] && exit 0; exit 1; }; \
	$(MAKE) --no-print-directory $(PARALLEL) $(SANITIZER_$*) sanitized-programs && $(MAKE) --no-print-directory $(SANITIZER_$*) sanitize-$*
sanitized-programs: $(SANITIZED) $(BUILD)/bin/statrec
sanitize-tsan sanitize-memcheck: sanitize-%: sanitized-programs
	$(Q)sh tests/sanitizers.sh $* $(BUILD) trainings $(SANITIZED)
.PHONY: check-sanitizers check-tsan check-memcheck sanitized-programs sanitize-tsan sanitize-memcheck

check-models: all ## train 43 PyTorch models with and without watch (PYTHON=... with torch, timm, transformers)
	$(Q)STATREC_LIBRARY=$(abspath $(BUILD))/lib/libstatrec.so $(or $(PYTHON),python3) tests/py/check_models.py \
	  --state $(BUILD)/models.state $(MODELS)
.PHONY: check-models

check-watched: all ## record 20 healthy PyTorch trainings and count what diagnose finds in them (PYTHON=... with torch)
	$(Q)rm -rf $(BUILD)/watched
	$(Q)for what in '' --diagnose; do \
	  STATREC_LIBRARY=$(abspath $(BUILD))/lib/libstatrec.so PYTHONPATH=python PATH=$(abspath $(BUILD))/bin:$$PATH \
	  $(or $(PYTHON),python3) sample_runs/watched/train.py $(BUILD)/watched $$what || exit 1; done
.PHONY: check-watched

# Goes on where it was stopped, while the objects of src/ are the same: what passed is in build/coverage/passed.
coverage: ## run the tests in a build of its own and print the share of lines and branches that ran, by folder (resumable)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=coverage all tests fuzz-targets
	$(Q)sh tests/coverage.sh build/coverage --begin
	$(Q)export RUN_WITH='sh tests/once.sh build/coverage/passed'; status=0; \
	$(MAKE) --no-print-directory $(PARALLEL) MODE=coverage unit || status=1; \
	$(MAKE) --no-print-directory $(PARALLEL) MODE=coverage replay || status=1; \
	JOBS=$(JOBS) sh tests/run_cli.sh build/coverage || status=1; \
	sh tests/coverage.sh build/coverage && exit $$status
.PHONY: coverage

VECTOR_TESTS := $(BUILD)/tests/norm/test_vectors $(BUILD)/tests/train/test_model_vectors
check-vectors: $(VECTOR_TESTS) ## VECTORS=DIR: check every vector file of DIR
	$(Q)sh tests/check_vectors.sh '$(VECTORS)' $(VECTOR_TESTS)
.PHONY: check-vectors

check-torch: ## PyTorch beside both number types, and what watches it (wants python3 with torch: tests/install_torch.sh)
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release build/release/bin/statrec build/release/lib/libstatrec.so
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=double build/double/bin/statrec
	$(Q)sh tests/run_cli.sh build/release train_dump_torch weights_torch watch_torch_records
	$(Q)sh tests/run_cli.sh build/double train_dump_torch weights_torch watch_torch_records
	$(Q)sh tests/run_python.sh build/release watch
.PHONY: check-torch

check-aarch64: ## statrec compiled for aarch64, in an emulator: tests, trainings, files of both (an hour at most)
	$(Q)MAKE='$(MAKE)' sh tests/aarch64.sh
.PHONY: check-aarch64

# -- bench, demo, install ----------------------------------------------------------------------

$(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(call libs_of,train)
	@mkdir -p $(@D)
	$(LINK)

$(BUILD)/bench/bench_step: $(call objs,bench/region_schedule.c bench/schedule_table.c)
$(BUILD)/bench/bench_figures $(BUILD)/bench/bench_long_run: $(call objs,bench/noise_run.c)

bench: $(BENCHES) ## build and run the programs behind the performance figures
	$(Q)sh bench/run.sh $(BUILD)
.PHONY: bench

performance: all $(BENCHES) ## measure what docs/performance.md shows, and write its tables; PYTHON=one with torch; goes on where it was stopped
	$(Q)python3 -B bench/performance.py $(BUILD) $(if $(PYTHON),--python $(PYTHON)) $(if $(SECONDS),--seconds $(SECONDS)) $(PARTS)
.PHONY: performance

sample-runs: all ## record sample_runs/*.h5 again, from the data sets in $$STATREC_SHARED/data (5 to 10 minutes)
	$(Q)sample_runs/record.sh $(BUILD)/bin
.PHONY: sample-runs

# The reproduction study: its experiments, or those that STUDY=NAMES names.
study_files = $(if $(STUDY),$(STUDY:%=sample_runs/study/%.conf),sample_runs/study)
study_pages = docs/reproduction.md $(wildcard docs/reproduction/*.md) docs/why-bn-loses.md README.md
study_tool = PYTHONDONTWRITEBYTECODE=1 $(BUILD)/bin/statrec study
study: all ## run what the reproduction study lacks (sample_runs/study), STUDY=NAMES: only these, JOBS=N at a time; resumes interrupted runs
	$(Q)$(study_tool) run $(study_files) --data $(or $(STATREC_SHARED),../shared)/data --jobs $(or $(JOBS),1)
study-plan: all ## what study would run, and how long that takes
	$(Q)$(study_tool) plan $(study_files) --jobs $(or $(JOBS),1)
study-report: all ## write the tables of the study's runs, which are kept in sample_runs/study/runs, into docs/reproduction.md, its pages, docs/why-bn-loses.md and README.md
	$(Q)$(study_tool) report sample_runs/study --samples sample_runs --published plots/published.tsv $(study_pages)
.PHONY: study study-plan study-report

demo: ## install what is missing, build, train both demo models, draw fig2 and fig3 into demo/
	$(Q)sh tests/install_packages.sh build
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) MODE=release all
	$(Q)sh sample_runs/demo.sh build/release/bin
.PHONY: demo

wheel: ## the Python package with programs and library as build/wheel/statrec-VERSION-*.whl, for pip install
	@command -v python3 >/dev/null || { echo 'make wheel: no python3' >&2; exit 1; }
	$(Q)CC='$(CC)' JOBS=$(JOBS) sh tools/wheel.sh build/wheel
wheel-pure: ## the Python package without them, which reads run files by h5py
	@command -v python3 >/dev/null || { echo 'make wheel-pure: no python3' >&2; exit 1; }
	$(Q)STATREC_PURE=1 sh tools/wheel.sh build/wheel
check-wheel: wheel wheel-pure ## install both wheels where nothing else is, and use them
	$(Q)sh tests/wheel.sh build/wheel
.PHONY: wheel wheel-pure check-wheel

lint: ## clang-format, clang and shellcheck over all files; tools that are missing are named
	$(Q)sh tests/lint.sh $(CPPFLAGS) -Itests -DSTATREC_GIT='""' -std=c11 -fopenmp $(WARN)
.PHONY: lint

architecture: ## draw the modules and write their table into docs/architecture.md
	$(Q)sh tools/architecture.sh
.PHONY: architecture

analyze: ## clang's static analyser over the modules that read untrusted files
	$(Q)sh tests/analyze.sh $(CPPFLAGS) -DSTATREC_GIT='""' -std=c11 -fopenmp
.PHONY: analyze

format: ## reformat every C file
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')
.PHONY: format

HEADERS := $(wildcard include/statrec/*.h)

$(BUILD)/tools/%: $(BUILD)/obj/tools/%.o $(BUILD)/lib/libstatrec.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(HDF5_LIBS) -lisal -lm -o $@

# What every program prints for --help, a file each.
$(BUILD)/help/statrec: $(PROGRAMS) tools/help.sh $(wildcard plots/*.gp plots/*.tsv share/presets/*.conf)
	$(Q)rm -rf $(@D).new && sh tools/help.sh $(BUILD)/bin $(@D).new
	$(Q)rm -rf $(@D) && mv $(@D).new $(@D)

# The date of the pages is that of the last commit, so that a page made again is the same.
PAGE_DATE = $$(git log -1 --format=%cs 2>/dev/null || date +%Y-%m-%d)
$(BUILD)/man/man1/statrec.1: $(BUILD)/help/statrec $(BUILD)/tools/file_page $(HEADERS) $(wildcard tools/*.awk tools/manual.*)
	@$(if $(Q),echo '  MAN  $(BUILD)/man',:)
	$(Q)sh tools/manual.sh $(BUILD) $(VERSION) "$(PAGE_DATE)"
man: $(BUILD)/man/man1/statrec.1 ## build the manual from tables of options, headers and the run file
.PHONY: man

$(BUILD)/completions/statrec: $(BUILD)/help/statrec $(wildcard tools/completion.*)
	@mkdir -p $(@D)
	@$(if $(Q),echo '  BASH $@',:)
	$(Q)sh tools/completion.sh $(BUILD) > $@.new && mv $@.new $@
completion: $(BUILD)/completions/statrec ## build the completion for bash from the same tables
.PHONY: completion

SHARE    = $(DESTDIR)$(PREFIX)/share
PRIVATE  = $(DESTDIR)$(PREFIX)/lib/statrec
# What programs need at run time, and libstatrec; the whole of a wheel.
install-programs: $(PROGRAMS) $(addprefix level-,$(HIGHER)) $(BUILD)/lib/libstatrec.so
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR) $(SHARE)/statrec/plots $(SHARE)/statrec/presets $(SHARE)/statrec/sample_runs/long $(SHARE)/statrec/sample_runs/figures
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin
	rm -rf $(PRIVATE)
	$(if $(LEVELS),install -d $(PRIVATE) $(addprefix $(PRIVATE)/glibc-hwcaps/,$(HIGHER)))
	$(if $(LEVELS),for i in . $(addprefix glibc-hwcaps/,$(HIGHER)); do install -m 755 $(SHARED_DIR)/$$i/*.so $(PRIVATE)/$$i || exit; done)
	install -m 755 $(BUILD)/lib/libstatrec.so $(DESTDIR)$(LIBDIR)/$(SO_FILE)
	ln -sf $(SO_FILE) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libstatrec.so
	install -m 644 $(wildcard plots/*.gp plots/*.tsv) $(SHARE)/statrec/plots
	install -m 644 $(wildcard share/presets/*.conf) $(SHARE)/statrec/presets
	install -m 644 $(wildcard sample_runs/*.h5) $(SHARE)/statrec/sample_runs
	install -m 644 $(wildcard sample_runs/long/*.h5) $(SHARE)/statrec/sample_runs/long
	install -m 644 $(wildcard sample_runs/figures/*.h5) $(SHARE)/statrec/sample_runs/figures
install: all man completion install-programs ## copy programs, libraries, headers, manual, completion and plots under DESTDIR/PREFIX
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include/statrec
	install -m 644 $(BUILD)/lib/libstatrec.a $(DESTDIR)$(LIBDIR)
	install -m 644 $(HEADERS) $(DESTDIR)$(PREFIX)/include/statrec
	install -d $(SHARE)/bash-completion/completions
	install -m 644 $(BUILD)/completions/statrec $(SHARE)/bash-completion/completions
	for i in statplot $(ANALYSES); do ln -sf statrec $(SHARE)/bash-completion/completions/$$i || exit; done
	install -d $(addprefix $(SHARE)/man/man,1 3 5)
	for i in 1 3 5; do install -m 644 $(BUILD)/man/man$$i/*.$$i $(SHARE)/man/man$$i || exit; done
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|; s|@VERSION@|$(VERSION)|; s|@HDF5@|$(HDF5)|' \
	  src/record/statrec.pc.in > $(BUILD)/statrec.pc
	install -m 644 $(BUILD)/statrec.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	@echo 'built for $(or $(if $(LEVELS),any $(firstword $(LEVELS)) with more for $(HIGHER)),$(if $(filter native,$(ARCH)),processors like that of this machine alone (ARCH=native)),ARCH=$(ARCH)); before linking with libstatrec.so, ldconfig or an rpath: docs/install.md'
uninstall: ## remove what install copied
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(PROGRAMS)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,libstatrec.so $(SONAME) $(SONAME).* libstatrec.a pkgconfig/statrec.pc)
	rm -f $(addprefix $(SHARE)/man/man1/,statrec.1 statrec-*.1 statplot.1 stat-analyses.1 $(addsuffix .1,$(ANALYSES)))
	rm -f $(addprefix $(SHARE)/bash-completion/completions/,statrec statplot $(ANALYSES))
	rm -f $(SHARE)/man/man3/libstatrec.3 $(SHARE)/man/man3/sr_*.3 $(SHARE)/man/man5/statrec-file.5
	rm -rf $(DESTDIR)$(PREFIX)/include/statrec $(SHARE)/statrec $(PRIVATE)
clean: ## remove build/ and demo/
	rm -rf build demo
.PHONY: install install-programs uninstall clean

help: ## print this list
	@printf 'usage: make [MODE=release|debug|asan|double|coverage|fuzz|tsan] [MPI=1] [ARCH=native|levels|x86-64-v2...] [DNNL=0] [V=1] TARGET\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | sed 's/\$$\$$/$$/' | expand -t 20
.PHONY: help FORCE
FORCE:

# Objects that are mentioned are no intermediate files (nor would .SECONDARY let make miss one that is
# gone): make keeps them, and makes one anew that is not there.
objects: $(call objs,$(wildcard analyses/*.c tests/*/*.c bench/*.c tools/*.c))
.PHONY: objects
-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
