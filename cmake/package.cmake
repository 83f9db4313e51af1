# The contents of the relocatable archive that `cpack` makes: the programs with every shared library that they need but glibc's, found from
# where they are unpacked, so that they run on another distribution with nothing installed. Included last: it reads which targets there are.
#
#   component programs   bin/mycc, bin/mycc-tune, lib/, share/ (completion of commands), documentation, python/
#   component tests      tests/: what carries the label `gpu`, to be run by ctest on a host with a device
#   component benchmarks tests/perf/ and the programs it needs: comparisons with libraries, Debian's oneDNN and OpenBLAS among them
set(MYCC_NVRTC_FOLDER "" CACHE PATH "A folder with libnvrtc.so.13 and libnvrtc-builtins.so.13.*, which then travel in the archive")

# glibc is the host's: the loader, which has to fit it, is named in the programs by an absolute path.
set(not_packed "^(libc|libm|libmvec|libdl|libpthread|librt|ld-linux-x86-64)\\.so")

# The libraries in lib/ say nothing of where theirs are. A program's DT_RPATH holds for them too, and for what is opened at run time; its
# younger form, DT_RUNPATH, would not.
function(mycc_relocatable)
  foreach(target ${ARGN})
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib")
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endforeach()
endfunction()

mycc_relocatable(mycc mycc-tune)
install(TARGETS mycc mycc-tune RUNTIME_DEPENDENCY_SET programs DESTINATION bin COMPONENT programs)
# Opened by its name when it is first called (tuner/cost/xgboost_library.cc), so that no program needs it to start.
file(REAL_PATH ${XGBOOST_LIBRARY} xgboost_file)
add_library(xgboost_opened SHARED IMPORTED)
set_target_properties(xgboost_opened PROPERTIES IMPORTED_LOCATION ${xgboost_file})
install(IMPORTED_RUNTIME_ARTIFACTS xgboost_opened RUNTIME_DEPENDENCY_SET programs DESTINATION ${CMAKE_INSTALL_PREFIX}/unused EXCLUDE_FROM_ALL COMPONENT unused)
install(FILES ${xgboost_file} DESTINATION lib RENAME libxgboost.so.0 COMPONENT programs)
install(RUNTIME_DEPENDENCY_SET programs PRE_EXCLUDE_REGEXES ${not_packed} DESTINATION lib COMPONENT programs)
install(FILES ${CMAKE_SOURCE_DIR}/deploy/archive/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION . COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/deploy/monitoring ${CMAKE_SOURCE_DIR}/deploy/systemd ${CMAKE_SOURCE_DIR}/deploy/slurm ${CMAKE_SOURCE_DIR}/deploy/helm DESTINATION deploy COMPONENT programs)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs ${CMAKE_SOURCE_DIR}/examples ${CMAKE_SOURCE_DIR}/python DESTINATION . COMPONENT programs
  PATTERN __pycache__ EXCLUDE)
# The completion of commands, where each shell looks below a prefix; the programs themselves know their options.
foreach(program mycc mycc-tune)
  install(CODE "set(completion_of $<TARGET_FILE:${program}>)
    set(completions_of_bash share/bash-completion/completions/${program})
    set(completions_of_zsh share/zsh/site-functions/_${program})
    set(completions_of_fish share/fish/vendor_completions.d/${program}.fish)" COMPONENT programs)
  install(CODE [[
    foreach(shell bash zsh fish)
      execute_process(COMMAND ${completion_of} completion ${shell} OUTPUT_VARIABLE script COMMAND_ERROR_IS_FATAL ANY)
      file(WRITE ${CMAKE_INSTALL_PREFIX}/${completions_of_${shell}} "${script}")
    endforeach()
  ]] COMPONENT programs)
endforeach()
if(MYCC_NVRTC_FOLDER)
  file(GLOB nvrtc ${MYCC_NVRTC_FOLDER}/libnvrtc.so.13 ${MYCC_NVRTC_FOLDER}/libnvrtc-builtins.so.13.*)
  list(LENGTH nvrtc found)
  if(NOT found EQUAL 2)
    message(FATAL_ERROR "MYCC_NVRTC_FOLDER=${MYCC_NVRTC_FOLDER}: expected libnvrtc.so.13 and libnvrtc-builtins.so.13.*, found: ${nvrtc}")
  endif()
  install(FILES ${nvrtc} DESTINATION lib COMPONENT programs)
endif()

# The terms of a component's packed libraries, which are Debian's, each package found by its library's name; and of further packages, which are
# in the programs or whose libraries lie elsewhere.
function(mycc_install_terms component)
  install(CODE "set(more ${ARGN})" COMPONENT ${component})
  install(CODE [[
    file(GLOB libraries RELATIVE ${CMAKE_INSTALL_PREFIX}/lib ${CMAKE_INSTALL_PREFIX}/lib/*.so*)
    list(TRANSFORM libraries PREPEND */lib/x86_64-linux-gnu/ OUTPUT_VARIABLE patterns)
    execute_process(COMMAND dpkg-query --search ${patterns} OUTPUT_VARIABLE owners ERROR_QUIET)
    string(REGEX MATCHALL "(^|\n)[^:\n]+" packages "${owners}")
    list(TRANSFORM packages STRIP)
    list(APPEND packages ${more})
    list(REMOVE_DUPLICATES packages)
    file(MAKE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/licenses)
    foreach(package IN LISTS packages)
      file(COPY_FILE /usr/share/doc/${package}/copyright ${CMAKE_INSTALL_PREFIX}/licenses/${package})
    endforeach()
  ]] COMPONENT ${component})
endfunction()
mycc_install_terms(programs llvm-19-dev liblld-19-dev libcli11-dev libspdlog-dev nlohmann-json3-dev libdlpack-dev)

# The benchmarks: what runs them lies in tests/perf, as in the sources, and the programs beside mycc.
get_property(benchmark_programs GLOBAL PROPERTY MYCC_BENCHMARK_PROGRAMS)
if(benchmark_programs)
  mycc_relocatable(${benchmark_programs})
  install(TARGETS ${benchmark_programs} RUNTIME_DEPENDENCY_SET benchmark_programs DESTINATION bin COMPONENT benchmarks)
  install(RUNTIME_DEPENDENCY_SET benchmark_programs PRE_EXCLUDE_REGEXES ${not_packed} DESTINATION lib COMPONENT benchmarks)
  file(GLOB benchmark_scripts ${CMAKE_SOURCE_DIR}/tests/perf/*.py ${CMAKE_SOURCE_DIR}/tests/perf/*.sh)
  list(FILTER benchmark_scripts EXCLUDE REGEX "_test\\.py$|hand_written")
  install(FILES ${benchmark_scripts} DESTINATION tests/perf COMPONENT benchmarks)
  # models_cpu.sh reads and calls libraries as the tests of models do.
  set(model_scripts model_library.py ocr_models.py ort_peer.py)
  list(TRANSFORM model_scripts PREPEND ${CMAKE_SOURCE_DIR}/tests/onnx/)
  install(FILES ${model_scripts} DESTINATION tests/onnx COMPONENT benchmarks)
  install(FILES ${CMAKE_SOURCE_DIR}/tests/requirements.txt DESTINATION tests COMPONENT benchmarks)
  install(FILES ${CMAKE_SOURCE_DIR}/deploy/models.sh DESTINATION deploy COMPONENT benchmarks)
  mycc_install_terms(benchmarks libopenblas0-openmp)
endif()

# The tests of devices: each program lies beside a file that ctest reads.
get_property(gpu_programs GLOBAL PROPERTY MYCC_GPU_PROGRAMS)
if(gpu_programs)
  mycc_relocatable(${gpu_programs})
  install(TARGETS ${gpu_programs} RUNTIME_DEPENDENCY_SET gpu_programs DESTINATION tests COMPONENT tests)
  install(RUNTIME_DEPENDENCY_SET gpu_programs PRE_EXCLUDE_REGEXES ${not_packed} DESTINATION lib COMPONENT tests)
endif()
get_property(gpu_scripts GLOBAL PROPERTY MYCC_GPU_SCRIPTS)
if(gpu_scripts)
  install(FILES ${gpu_scripts} DESTINATION tests COMPONENT tests)
endif()
get_property(gpu_tests GLOBAL PROPERTY MYCC_GPU_TESTS)
file(WRITE ${CMAKE_BINARY_DIR}/archive_tests/CTestTestfile.cmake "${gpu_tests}")
install(FILES ${CMAKE_BINARY_DIR}/archive_tests/CTestTestfile.cmake DESTINATION tests COMPONENT tests)

set(CPACK_PACKAGE_NAME mycc)
set(CPACK_PACKAGE_VENDOR mycc)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "A tensor compiler and its autotuning service")
set(CPACK_PACKAGE_FILE_NAME mycc-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_GENERATOR TXZ)
set(CPACK_THREADS 0)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
include(CPack)
