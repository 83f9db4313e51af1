# Artifacts from outside: a C program that is linked with two of them, and Python with NumPy arrays.
set(artifact_libraries "")
foreach(module first second)
  set(library ${CMAKE_CURRENT_BINARY_DIR}/${module}.so)
  add_custom_command(OUTPUT ${library} ${CMAKE_CURRENT_BINARY_DIR}/${module}.h
    COMMAND mycc compile ${CMAKE_CURRENT_SOURCE_DIR}/artifact.te --name ${module} -o ${CMAKE_CURRENT_BINARY_DIR}
    DEPENDS mycc artifact.te VERBATIM)
  add_custom_target(artifact_${module}_compiled DEPENDS ${library})
  add_library(artifact_${module} SHARED IMPORTED)
  set_target_properties(artifact_${module} PROPERTIES IMPORTED_LOCATION ${library} IMPORTED_SONAME ${module}.so)
  add_dependencies(artifact_${module} artifact_${module}_compiled)
  list(APPEND artifact_libraries artifact_${module})
endforeach()
add_executable(artifact_abi_test artifact_abi_test.c)
set_target_properties(artifact_abi_test PROPERTIES C_STANDARD 11)
target_compile_options(artifact_abi_test PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_include_directories(artifact_abi_test PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
target_link_libraries(artifact_abi_test PRIVATE ${artifact_libraries} m Threads::Threads)
add_test(NAME artifact_abi_test COMMAND artifact_abi_test)
set_tests_properties(artifact_abi_test PROPERTIES LABELS fast TIMEOUT 60)

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(python ${Python3_EXECUTABLE})
if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python3)
  set(python ${CMAKE_SOURCE_DIR}/.venv/bin/python3)
endif()
add_test(NAME artifact_ctypes_test
  COMMAND ${python} -B ${CMAKE_CURRENT_SOURCE_DIR}/artifact_ctypes_test.py $<TARGET_FILE:mycc>)
set_tests_properties(artifact_ctypes_test PROPERTIES LABELS e2e TIMEOUT 300 SKIP_RETURN_CODE 77)
