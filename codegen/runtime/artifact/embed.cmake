# cmake -DOUTPUT=embedded.cc "-DFILES=name=path;..." -P embed.cmake: the bytes of files as C++ arrays mycc_embedded_NAME.
set(text "#include <cstddef>\n")
foreach(entry ${FILES})
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${entry}")
  set(name ${CMAKE_MATCH_1})
  file(READ "${CMAKE_MATCH_2}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "extern const unsigned char mycc_embedded_${name}[];\nextern const size_t mycc_embedded_${name}_size;\n"
    "const unsigned char mycc_embedded_${name}[] = {\n${bytes}};\nconst size_t mycc_embedded_${name}_size = sizeof mycc_embedded_${name};\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
