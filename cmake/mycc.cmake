# How every library, program and test of the project is declared.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The same for libraries and programs, which then can share precompiled headers.
add_compile_options(-fPIC -pthread)

# The sloppiness lets ccache keep objects that were compiled with precompiled headers.
find_program(MYCC_CCACHE ccache)
if(MYCC_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${MYCC_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MYCC_CCACHE})
endif()

# LLVM's static libraries make linking the slow step; mold links a test in a fraction of ld's time.
find_program(MYCC_MOLD mold)
if(MYCC_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

option(MYCC_WERROR "Treat warnings as errors" ON)
set(MYCC_SANITIZE "" CACHE STRING "Sanitizers for the whole build, e.g. address,undefined")

# For a tree and a compiler cache that are empty, as in CI: half of the time to compile a file goes into its headers, so a library's
# sources are compiled eight at a time. An edit then costs more.
# The numbers of lines, which take a fifth of that time, are left out, and Clang inlines small functions alone, which takes a
# quarter off the time of the optimizer.
option(MYCC_FROM_EMPTY "Compile the sources of a library in batches" OFF)
if(MYCC_FROM_EMPTY)
  add_compile_options($<$<CONFIG:Debug>:-g0>)
  add_compile_options("$<$<AND:$<CONFIG:Debug>,$<COMPILE_LANG_AND_ID:CXX,Clang>>:SHELL:-mllvm -inline-threshold=50>")
endif()

add_library(mycc_options INTERFACE)
target_compile_options(mycc_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<BOOL:${MYCC_WERROR}>:-Werror>
  # GCC 12 takes members of an absl::StatusOr for uninitialised that are not read then.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # A guarded member is accessed with its lock held, or the build fails.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # GCC 12's std::stable_sort calls what C++17 deprecates, and Clang sees it through the precompiled headers.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  # Nested braces may be left out where what is initialized is an array of structures.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-braces>
  # In a batch, GCC takes the file that it includes for a header.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${MYCC_FROM_EMPTY}>>:-Wno-subobject-linkage>
  # GCC 12 takes LLVM's own operators new and delete for a mismatch.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>
  # GCC 12 sees overlapping and oversized copies in optimised std::string code that are not there (its bugs 105651 and 105329).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>)
target_include_directories(mycc_options INTERFACE ${CMAKE_SOURCE_DIR})
if(MYCC_SANITIZE)
  add_compile_options(-fsanitize=${MYCC_SANITIZE})
  if(MYCC_SANITIZE MATCHES undefined)
    # A finding ends the program. The checks that are left out look at every access: together they double the time that a
    # file takes to compile, and of what they find AddressSanitizer sees the part that x86-64 does not forgive.
    add_compile_options(-fno-sanitize=alignment,null,object-size,pointer-overflow,vptr -fno-sanitize-recover=all)
    # Clang's check of a called function's type reads what stands before its code, which generated kernels have not.
    add_compile_options($<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  endif()
  add_compile_options(-fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MYCC_SANITIZE})
endif()

# Tests, programs and the libraries of folders that set MYCC_COLD are not optimized in a Debug build: they run briefly, and optimizing them
# takes two thirds of the build's time. The compiler, the search and the interpreter are optimized.
set(MYCC_UNOPTIMIZED $<$<CONFIG:Debug>:-O0>)

# Headers that nearly every source includes, compiled once for each kind of target.
function(mycc_precompile NAME)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS;OPTIONS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${NAME}.cc CONTENT "")
  add_library(${NAME} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE mycc_options ${ARG_DEPS})
  target_compile_options(${NAME} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${NAME} PRIVATE ${ARG_HEADERS})
endfunction()
set(headers <algorithm> <cstdint> <functional> <map> <memory> <optional> <set> <string> <string_view> <utility> <variant> <vector>
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_join.h>)
mycc_precompile(library_headers HEADERS ${headers})
mycc_precompile(cold_headers HEADERS ${headers} OPTIONS ${MYCC_UNOPTIMIZED})
mycc_precompile(test_headers HEADERS ${headers} <fstream> <gmock/gmock.h> <gtest/gtest.h>
  DEPS GTest::gmock OPTIONS ${MYCC_UNOPTIMIZED})

# mycc_library(NAME codegen_ir SRCS a.cc ... DEPS codegen_expr absl::status ...)
function(mycc_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PUBLIC mycc_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  set_target_properties(${ARG_NAME} PROPERTIES UNITY_BUILD ${MYCC_FROM_EMPTY})
  if(MYCC_COLD)
    target_compile_options(${ARG_NAME} PRIVATE ${MYCC_UNOPTIMIZED})
    target_precompile_headers(${ARG_NAME} REUSE_FROM cold_headers)
  else()
    target_precompile_headers(${ARG_NAME} REUSE_FROM library_headers)
  endif()
endfunction()

# mycc_test(NAME expr_test SRCS expr_test.cc DEPS codegen_expr LABELS fast): one GoogleTest program, one ctest entry. Tests that stand on the same
# headers are one program, which then compiles and links these once. With
# SHARDS N, N entries that run beside each other, each a part of its tests. TOLD_CPUS: it depends on what processor is detected, and runs once
# more under each name in MYCC_TOLD_CPUS (tests/target/told_host.h), with the label `told`, on fewer random inputs.
set(MYCC_TOLD_CPUS haswell skylake-avx512 sapphirerapids znver3 znver5)
function(mycc_test)
  cmake_parse_arguments(ARG "TOLD_CPUS" "NAME;TIMEOUT;SHARDS" "SRCS;DEPS;LABELS" ${ARGN})
  if(ARG_TOLD_CPUS)
    list(APPEND ARG_DEPS told_host told_host_main)
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(MYCC_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE mycc_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(${ARG_NAME} PRIVATE ${MYCC_UNOPTIMIZED})
  target_precompile_headers(${ARG_NAME} REUSE_FROM test_headers)
  set_target_properties(${ARG_NAME} PROPERTIES UNITY_BUILD ${MYCC_FROM_EMPTY})
  # Two tests share two cores: a thread that waits for its team leaves the core to the other test.
  set(environment "OMP_WAIT_POLICY=passive;MYCC_SOURCE_DIR=${CMAKE_SOURCE_DIR};MYCC_BINARY_DIR=${CMAKE_BINARY_DIR};VIRTUAL_ENV=${CMAKE_SOURCE_DIR}/.venv")
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(entry ${ARG_NAME})
    set(part "")
    if(ARG_SHARDS GREATER 1)
      math(EXPR index "${shard} - 1")
      set(entry ${ARG_NAME}_${shard})
      set(part ";GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    endif()
    add_test(NAME ${entry} COMMAND ${ARG_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${entry} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment}${part}")
    if("e2e" IN_LIST ARG_LABELS)
      mycc_run_early(${entry})
    elseif("slow" IN_LIST ARG_LABELS OR "points" IN_LIST ARG_LABELS)
      set_tests_properties(${entry} PROPERTIES COST 100)  # begins before the short ones, which fill the other core
    endif()
  endforeach()
  if(ARG_TOLD_CPUS)
    foreach(cpu ${MYCC_TOLD_CPUS})
      add_test(NAME ${ARG_NAME}_on_${cpu} COMMAND ${ARG_NAME} --cpu=${cpu} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      set_tests_properties(${ARG_NAME}_on_${cpu} PROPERTIES LABELS told TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${environment};MYCC_RANDOM_SEEDS=3")
    endforeach()
    add_dependencies(told_tests ${ARG_NAME})
  endif()
  foreach(label ${ARG_LABELS})
    add_dependencies(${label}_tests ${ARG_NAME})
  endforeach()
  if("gpu" IN_LIST ARG_LABELS)
    set_tests_properties(${ARG_NAME} PROPERTIES SKIP_RETURN_CODE 77)
    set_property(GLOBAL APPEND PROPERTY MYCC_GPU_PROGRAMS ${ARG_NAME})
    mycc_pack_test(${ARG_NAME} ${ARG_TIMEOUT} ./${ARG_NAME})
  endif()
endfunction()

# For a test that waits more than it computes: it begins before others, which run meanwhile, and has its own lock of the CPU, since
# nothing that it measures needs a quiet machine.
function(mycc_run_early)
  foreach(test ${ARGN})
    set(locks ${CMAKE_BINARY_DIR}/locks/${test})
    file(MAKE_DIRECTORY ${locks})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "XDG_RUNTIME_DIR=${locks}")
    set_tests_properties(${test} PROPERTIES COST 1000)
  endforeach()
endfunction()

# mycc_gpu_script(NAME farm_test SCRIPT farm_test.py WITH client.py TIMEOUT 600): a test in Python of the programs in bin/, which are its
# first argument; WITH are files that it needs beside it.
function(mycc_gpu_script)
  cmake_parse_arguments(ARG "" "NAME;SCRIPT;TIMEOUT" "WITH" ${ARGN})
  add_test(NAME ${ARG_NAME} COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SCRIPT} ${CMAKE_BINARY_DIR}/bin)
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS gpu TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ON SKIP_RETURN_CODE 77)
  foreach(file ${ARG_SCRIPT} ${ARG_WITH})
    set_property(GLOBAL APPEND PROPERTY MYCC_GPU_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  mycc_pack_test(${ARG_NAME} ${ARG_TIMEOUT} "python3 -B ${ARG_SCRIPT} ../bin")
endfunction()

# One test more in the file that ctest reads in an unpacked archive, whose folder each test runs in. Devices are not shared: one at a time.
function(mycc_pack_test name timeout command)
  set_property(GLOBAL APPEND_STRING PROPERTY MYCC_GPU_TESTS "add_test(${name} ${command})
set_tests_properties(${name} PROPERTIES LABELS gpu TIMEOUT ${timeout} RUN_SERIAL ON SKIP_RETURN_CODE 77
  ENVIRONMENT \"MYCC_SOURCE_DIR=..;MYCC_BINARY_DIR=..\")
")
endfunction()

# The programs that people and the end-to-end tests run.
add_custom_target(programs)

# The tests with a label: what the presets `asan`, `tsan`, `fuzz` and `rest` build in place of everything.
foreach(label fast slow points told threads e2e perf gpu fuzz)
  add_custom_target(${label}_tests)
endforeach()
