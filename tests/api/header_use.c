/* The header alone, twice, in every language standard that it promises; compiled as C and as C++.
 */
#include <shardfeed.h>

int main(void) {
    shf_error error = {0, 0, 0, {0}};
    shf_bytes bytes = {0, 0};
    shf_options* options = 0;
    shf_stream* stream = 0;
    shf_sample* sample = 0;
    shf_block* block = 0;
    shf_log_fn log = 0;
    shf_alloc_fn alloc = 0;
    shf_free_fn release = 0;
    shf_url_fn each = 0;
    return error.code != SHF_OK || bytes.size != 0 || options || stream || sample || block || log ||
           alloc || release || each || SHF_STRLEN != (size_t)-1;
}
