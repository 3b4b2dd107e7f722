# FindPalCuda: the imported targets pal::cudart and pal::nccl of a CUDA build. After PalTorch, and CUDA enabled or not.
# PAL_NVJPEG_INCLUDE: where nvjpeg.h is, if it is anywhere; its library is looked for when a run asks for it.
#
# A process must hold one libcudart and the NCCL that LibTorch was built against, so those of LibTorch's own environment
# come first (<torch>/../nvidia, as PyPI installs them), then PAL_NCCL_DIR and the CUDA toolkit.
get_filename_component(_nvidia "${PAL_TORCH_DIR}/../nvidia" ABSOLUTE)
if(NOT PAL_NCCL_DIR)
  set(PAL_NCCL_DIR ${_nvidia}/nccl)
endif()
find_path(PAL_CUDA_INCLUDE cuda_runtime_api.h
  HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ENV CUDA_PATH PATHS /usr/local/cuda ${_nvidia}/cu13
  PATH_SUFFIXES include)
# Wheels have no unversioned names; the version is the one that LibTorch's wheel is built for.
find_library(PAL_CUDART_LIB NAMES libcudart.so.13 cudart
  HINTS ${_nvidia}/cu13/lib ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} ENV CUDA_PATH PATHS /usr/local/cuda
  PATH_SUFFIXES lib64 lib)
find_path(PAL_NCCL_INCLUDE nccl.h HINTS ${PAL_NCCL_DIR}/include NO_DEFAULT_PATH)
find_path(PAL_NVJPEG_INCLUDE nvjpeg.h HINTS ${_nvidia}/cu13/include ${PAL_CUDA_INCLUDE})
find_library(PAL_NCCL_LIB NAMES libnccl.so.2 nccl HINTS ${PAL_NCCL_DIR}/lib NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PalCuda
  REQUIRED_VARS PAL_CUDART_LIB PAL_CUDA_INCLUDE PAL_NCCL_LIB PAL_NCCL_INCLUDE
  REASON_FAILURE_MESSAGE "give -DPAL_NCCL_DIR=<folder with include/nccl.h and lib/libnccl.so.2>, \
or build without CUDA: -DPAL_CUDA=OFF")
if(PalCuda_FOUND AND NOT TARGET pal::cudart)
  foreach(name cudart nccl)
    string(TOUPPER ${name} _upper)
    add_library(pal::${name} SHARED IMPORTED)
    set_target_properties(pal::${name} PROPERTIES IMPORTED_LOCATION ${PAL_${_upper}_LIB})
  endforeach()
  target_include_directories(pal::cudart SYSTEM INTERFACE ${PAL_CUDA_INCLUDE})
  target_include_directories(pal::nccl SYSTEM INTERFACE ${PAL_NCCL_INCLUDE})
  target_link_libraries(pal::nccl INTERFACE pal::cudart)
endif()
