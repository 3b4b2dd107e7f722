# FindPalHttp: cpp-httplib as pal::http: the shared library of the distribution with its header, or the header alone.
#
# Debian's library is built with these definitions, which change the classes of its header: our files need them too.
find_path(PAL_HTTP_INCLUDE_DIR httplib.h)
find_library(PAL_HTTP_LIBRARY cpp-httplib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PalHttp REQUIRED_VARS PAL_HTTP_INCLUDE_DIR)
if(PalHttp_FOUND AND NOT TARGET pal::http)
  add_library(pal::http INTERFACE IMPORTED)
  target_include_directories(pal::http SYSTEM INTERFACE ${PAL_HTTP_INCLUDE_DIR})
  if(PAL_HTTP_LIBRARY)
    target_compile_definitions(pal::http INTERFACE
      CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
    target_link_libraries(pal::http INTERFACE ${PAL_HTTP_LIBRARY})
  endif()
endif()
mark_as_advanced(PAL_HTTP_INCLUDE_DIR PAL_HTTP_LIBRARY)
