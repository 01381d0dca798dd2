# find_package(Rashomon) gives
#
#   rashomon_check_tests([OPTION...])
#
# Tests of executables that are added after the call, in the same folder or below it, are executed by `rashomon check OPTION...`:
# ctest reports a test as failed where something was proven. Options that all tests share can stand in rashomon.toml instead. The
# executables have to be built with rashomon-cc and rashomon-cxx. Only tests whose COMMAND begins with a target are checked, as
# only targets have a launcher.

function(rashomon_check_tests)
  find_program(RASHOMON_EXECUTABLE rashomon REQUIRED)
  set(launcher "${RASHOMON_EXECUTABLE}" check ${ARGN} --)
  # Tests have launchers since CMake 3.29; before, an emulator stands in front of them.
  if(CMAKE_VERSION VERSION_LESS 3.29)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${launcher}" PARENT_SCOPE)
  else()
    set(CMAKE_TEST_LAUNCHER "${launcher}" PARENT_SCOPE)
  endif()
endfunction()

set(Rashomon_FOUND TRUE)
