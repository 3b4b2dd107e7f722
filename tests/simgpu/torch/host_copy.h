// host_copy: a CUDA tensor's numbers for an operator that runs on the CPU, and the way back.
//
// Order: host_view() and host_clone() wait for the current stream, and for no other. write_in_stream() writes when the
//   current stream comes to it. So a tensor that another stream has not finished is seen as it is, too early.
#pragma once

#include <ATen/core/Tensor.h>

namespace simgpu {

void wait_for_current_stream(const at::Tensor& t);
at::Tensor host_alias(const at::Tensor& t);  // a CPU tensor on the same bytes; waits for nothing: for shapes only
at::Tensor host_view(const at::Tensor& t);   // the same after the current stream
at::Tensor host_clone(const at::Tensor& t);  // with the numbers, sizes and strides of t
// Elements of `from` (CPU) into `to` (CUDA, the same sizes); bytes between them are not touched.
void write_in_stream(const at::Tensor& to, const at::Tensor& from);

}  // namespace simgpu
