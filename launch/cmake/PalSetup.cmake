# PalSetup: what launch/setup decided, as defaults of a build by hand, so that `cmake --preset release` needs no -D.
#
# launch/setup writes .deps/env with PAL_TORCH_DIR, PAL_NCCL_DIR and PAL_NVCC. A value that is given with -D, or
# is in the cache already, wins. Without that file: LibTorch from Torch_DIR or CMAKE_PREFIX_PATH, nvcc from PATH or
# /usr/local/cuda.
set(_env ${PROJECT_SOURCE_DIR}/.deps/env)
if(EXISTS ${_env})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_env})
  file(STRINGS ${_env} _lines REGEX "^PAL_[A-Z_]+=")
  foreach(_line IN LISTS _lines)
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" _line "${_line}")
    set(_name ${CMAKE_MATCH_1})
    string(REGEX REPLACE "\\\\(.)" "\\1" _value "${CMAKE_MATCH_2}")   # as bash's printf %q writes it
    if(_value STREQUAL "''")
      set(_value "")
    endif()
    set(_setup_${_name} "${_value}")
  endforeach()
  foreach(_name PAL_TORCH_DIR PAL_NCCL_DIR)
    if(NOT DEFINED ${_name} AND _setup_${_name})
      set(${_name} "${_setup_${_name}}")
    endif()
  endforeach()
  if(PAL_CUDA STREQUAL "AUTO" AND NOT CMAKE_CUDA_COMPILER AND DEFINED _setup_PAL_NVCC)
    if(_setup_PAL_NVCC)
      set(CMAKE_CUDA_COMPILER ${_setup_PAL_NVCC})
    else()
      set(PAL_CUDA OFF)                  # setup found no nvcc that fits this LibTorch, or was asked for CPU only
    endif()
  endif()
endif()
if(NOT PAL_CUDA STREQUAL "OFF" AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(PAL_NVCC_FOUND nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(PAL_NVCC_FOUND)
  if(PAL_NVCC_FOUND)
    set(CMAKE_CUDA_COMPILER ${PAL_NVCC_FOUND})
  endif()
endif()
