# Debian 12's packages, found once. LLVM, gRPC and XGBoost are linked only by the folders that name them.
find_package(Threads REQUIRED)
find_package(absl REQUIRED CONFIG)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED CONFIG)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)

# Debian's XGBoost, libseccomp and lld ship no usable CMake targets.
find_library(SECCOMP_LIBRARY seccomp REQUIRED)
find_path(SECCOMP_INCLUDE_DIR seccomp.h REQUIRED)
add_library(seccomp_library INTERFACE)
target_include_directories(seccomp_library SYSTEM INTERFACE ${SECCOMP_INCLUDE_DIR})
target_link_libraries(seccomp_library INTERFACE ${SECCOMP_LIBRARY})
find_library(XGBOOST_LIBRARY xgboost REQUIRED)
find_path(XGBOOST_INCLUDE_DIR xgboost/c_api.h REQUIRED)
add_library(xgboost INTERFACE)
target_include_directories(xgboost SYSTEM INTERFACE ${XGBOOST_INCLUDE_DIR})
target_link_libraries(xgboost INTERFACE ${CMAKE_DL_LIBS})  # tuner/cost/xgboost_library.cc opens the library

add_library(lld_elf INTERFACE)
target_link_libraries(lld_elf INTERFACE ${LLVM_LIBRARY_DIR}/liblldELF.a ${LLVM_LIBRARY_DIR}/liblldCommon.a)

# Debian's libmicrohttpd ships none either.
find_library(MICROHTTPD_LIBRARY microhttpd REQUIRED)
find_path(MICROHTTPD_INCLUDE_DIR microhttpd.h REQUIRED)
add_library(microhttpd INTERFACE)
target_include_directories(microhttpd SYSTEM INTERFACE ${MICROHTTPD_INCLUDE_DIR})
target_link_libraries(microhttpd INTERFACE ${MICROHTTPD_LIBRARY})
