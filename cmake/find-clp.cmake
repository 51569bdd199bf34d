# The target shardpack_clp: COIN-OR Clp, the simplex solver, and the utilities below it. They come without a CMake package, and their
# pkg-config files ask for development files of BLAS and others that the shared libraries need not. Used by the build and by the
# installed package, whose static libraries are linked against it.
if(NOT TARGET shardpack_clp)
  find_path(SHARDPACK_CLP_INCLUDE_DIR ClpSimplex.hpp PATH_SUFFIXES coin coin-or)
  find_path(SHARDPACK_COINUTILS_INCLUDE_DIR CoinFinite.hpp PATH_SUFFIXES coin coin-or)
  find_library(SHARDPACK_CLP_LIBRARY Clp)
  find_library(SHARDPACK_COINUTILS_LIBRARY CoinUtils)
  mark_as_advanced(SHARDPACK_CLP_INCLUDE_DIR SHARDPACK_COINUTILS_INCLUDE_DIR SHARDPACK_CLP_LIBRARY SHARDPACK_COINUTILS_LIBRARY)
  foreach(part CLP_INCLUDE_DIR COINUTILS_INCLUDE_DIR CLP_LIBRARY COINUTILS_LIBRARY)
    if(NOT SHARDPACK_${part})
      message(FATAL_ERROR "COIN-OR Clp is not complete: SHARDPACK_${part} was not found "
        "(Debian: coinor-libclp-dev and coinor-libcoinutils-dev)")
    endif()
  endforeach()
  add_library(shardpack_clp INTERFACE IMPORTED)
  target_include_directories(shardpack_clp INTERFACE ${SHARDPACK_CLP_INCLUDE_DIR} ${SHARDPACK_COINUTILS_INCLUDE_DIR})
  target_link_libraries(shardpack_clp INTERFACE ${SHARDPACK_CLP_LIBRARY} ${SHARDPACK_COINUTILS_LIBRARY})
  file(STRINGS ${SHARDPACK_CLP_INCLUDE_DIR}/ClpConfig.h shardpack_clp_line REGEX "^#define CLP_VERSION \"")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" Clp_VERSION "${shardpack_clp_line}")
endif()
