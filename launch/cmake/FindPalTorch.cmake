# FindPalTorch: the imported target pal::torch for a LibTorch in a folder with include/ and lib/.
#
# Where it is: PAL_TORCH_DIR, or the LibTorch that Torch_DIR / CMAKE_PREFIX_PATH point at. Its own TorchConfig.cmake is
# not used: it demands a CUDA toolkit even for a program that needs none. With PAL_WITH_CUDA it must be a CUDA build; of
# its CUDA half only libc10_cuda is linked, code that computes on a GPU loads the rest (core/ops/torch_cuda.h).
if(NOT PAL_TORCH_DIR AND Torch_DIR)
  get_filename_component(PAL_TORCH_DIR "${Torch_DIR}/../../.." ABSOLUTE)
endif()
find_path(PAL_TORCH_INCLUDE ATen/ATen.h HINTS ${PAL_TORCH_DIR}/include PATH_SUFFIXES include)
get_filename_component(_torch_root "${PAL_TORCH_INCLUDE}/.." ABSOLUTE)
set(_torch_libs PAL_TORCH_LIB PAL_C10_LIB)
find_library(PAL_TORCH_LIB torch_cpu HINTS ${_torch_root}/lib NO_DEFAULT_PATH)
find_library(PAL_C10_LIB c10 HINTS ${_torch_root}/lib NO_DEFAULT_PATH)
if(PAL_WITH_CUDA)
  list(APPEND _torch_libs PAL_C10_CUDA_LIB)
  find_library(PAL_C10_CUDA_LIB c10_cuda HINTS ${_torch_root}/lib NO_DEFAULT_PATH)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PalTorch REQUIRED_VARS ${_torch_libs} PAL_TORCH_INCLUDE
  REASON_FAILURE_MESSAGE "no LibTorch found (with PAL_CUDA it must be a CUDA build): run launch/setup, \
or give -DPAL_TORCH_DIR=<folder with include/ and lib/>")
if(PalTorch_FOUND AND NOT TARGET pal::torch)
  set(PAL_TORCH_DIR ${_torch_root} CACHE PATH "LibTorch: the folder with include/ and lib/" FORCE)
  add_library(pal::torch INTERFACE IMPORTED)
  target_include_directories(pal::torch SYSTEM INTERFACE
    ${PAL_TORCH_INCLUDE} ${PAL_TORCH_INCLUDE}/torch/csrc/api/include)
  target_link_libraries(pal::torch INTERFACE ${PAL_TORCH_LIB} ${PAL_C10_LIB})
  if(PAL_WITH_CUDA)
    target_link_libraries(pal::torch INTERFACE ${PAL_C10_CUDA_LIB})
  endif()
  target_compile_features(pal::torch INTERFACE cxx_std_20)
endif()
