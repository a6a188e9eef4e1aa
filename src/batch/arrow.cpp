#include "batch/arrow.h"

#include "core/error.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shf {

namespace {

// The structs of the interface, which are frozen.
struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    int64_t flags;
    int64_t n_children;
    ArrowSchema** children;
    ArrowSchema* dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};
struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void** buffers;
    ArrowArray** children;
    ArrowArray* dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

// A node of both trees, before it is handed over.
struct Node {
    std::string format, name, metadata;
    int64_t length = 0;
    std::vector<const void*> buffers;
    std::vector<Node> children;
};

// What the structs of a node point to. A consumer may move a child away, so every node owns its
// own, and keeps the batch.
struct SchemaOwner {
    std::string format, name, metadata;
    std::vector<ArrowSchema> children;
    std::vector<ArrowSchema*> pointers;
};
struct ArrayOwner {
    BatchRef batch;
    std::vector<const void*> buffers;
    std::vector<ArrowArray> children;
    std::vector<ArrowArray*> pointers;
};

template <typename Struct, typename Owner>
void release(Struct* released) {
    const std::unique_ptr<Owner> owner(static_cast<Owner*>(released->private_data));
    for (Struct& child : owner->children)
        if (child.release) child.release(&child);
    released->release = nullptr;
}

// Releases what is there of a tree when the rest of it cannot be made.
template <typename Struct>
struct Guard {
    Struct value{};
    ~Guard() {
        if (value.release) value.release(&value);
    }
    Struct take() { return std::exchange(value, {}); }
};

template <typename Struct, typename Owner, typename Make>
void add_children(Owner& owner, Struct& out, const std::vector<Node>& nodes, Make make) {
    owner.children.resize(nodes.size());
    owner.pointers.resize(nodes.size());
    out.release = release<Struct, Owner>;
    out.private_data = &owner;
    for (size_t i = 0; i < nodes.size(); ++i) {
        make(nodes[i], owner.children[i]);
        owner.pointers[i] = &owner.children[i];
    }
    out.n_children = static_cast<int64_t>(nodes.size());
    out.children = owner.pointers.data();
}

void make_schema(const Node& node, ArrowSchema& out) {
    Guard<ArrowSchema> made;
    auto* owner =
        std::make_unique<SchemaOwner>(SchemaOwner{node.format, node.name, node.metadata, {}, {}})
            .release();
    made.value.release = release<ArrowSchema, SchemaOwner>;
    made.value.private_data = owner;
    add_children(*owner, made.value, node.children, make_schema);
    made.value.format = owner->format.c_str();
    made.value.name = owner->name.c_str();
    made.value.metadata = owner->metadata.empty() ? nullptr : owner->metadata.data();
    out = made.take();
}

void make_array(Batch& batch, const Node& node, ArrowArray& out) {
    Guard<ArrowArray> made;
    batch.ref();
    BatchRef kept(&batch);
    auto* owner =
        std::make_unique<ArrayOwner>(ArrayOwner{std::move(kept), node.buffers, {}, {}}).release();
    made.value.release = release<ArrowArray, ArrayOwner>;
    made.value.private_data = owner;
    add_children(*owner, made.value, node.children,
                 [&](const Node& child, ArrowArray& array) { make_array(batch, child, array); });
    made.value.length = node.length;
    made.value.n_buffers = static_cast<int64_t>(owner->buffers.size());
    made.value.buffers = owner->buffers.data();
    out = made.take();
}

void append_text(std::string& out, std::string_view text) {
    const auto size = static_cast<int32_t>(text.size());
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += text;
}

// The extension type that has the shape of a row.
std::string tensor_metadata(const ArrayType& row) {
    std::string shape = "{\"shape\":[";
    for (const int64_t length : row.dimensions()) {
        if (!shape.ends_with('[')) shape += ',';
        shape += std::to_string(length);
    }
    shape += "]}";
    std::string out;
    const int32_t pairs = 2;
    out.append(reinterpret_cast<const char*>(&pairs), sizeof pairs);
    append_text(out, "ARROW:extension:name");
    append_text(out, "arrow.fixed_shape_tensor");
    append_text(out, "ARROW:extension:metadata");
    append_text(out, shape);
    return out;
}

// So many numbers, one after another.
Node numbers(DType dtype, std::string name, const void* data, int64_t length) {
    const DTypeTraits& traits = traits_of(dtype);
    Node node{.format = std::string(traits.arrow),
              .name = std::move(name),
              .metadata = {},
              .length = length,
              .buffers = {nullptr, data},
              .children = {}};
    if (traits.kind != 'c') return node;
    Node pair{.format = "+w:2",
              .name = std::exchange(node.name, "item"),
              .metadata = {},
              .length = length,
              .buffers = {nullptr},
              .children = {}};
    node.length *= 2;
    pair.children.push_back(std::move(node));
    return pair;
}

Node list_of(std::string format, std::string name, int64_t length, std::vector<const void*> buffers,
             Node items) {
    Node node{.format = std::move(format),
              .name = std::move(name),
              .metadata = {},
              .length = length,
              .buffers = std::move(buffers),
              .children = {}};
    node.children.push_back(std::move(items));
    return node;
}

Node column_node(const BatchColumn& column, uint64_t rows) {
    const auto length = static_cast<int64_t>(rows);
    const void* const data = column.values ? column.values->data : nullptr;
    if (column.ragged && column.kind < ColumnSpec::Kind::integer)
        return {.format = column.kind == ColumnSpec::Kind::text ? "U" : "Z",
                .name = column.name,
                .metadata = {},
                .length = length,
                .buffers = {nullptr, column.offsets(), data},
                .children = {}};
    if (column.ragged)
        return list_of("+L", column.name, length, {nullptr, column.offsets()},
                       numbers(column.dtype, "item", data, column.offsets()[rows]));
    if (column.row.ndim == 0) return numbers(column.dtype, column.name, data, length);
    const auto elements = static_cast<int64_t>(column.row.elements());
    Node node = list_of("+w:" + std::to_string(elements), column.name, length, {nullptr},
                        numbers(column.dtype, "item", data, length * elements));
    node.metadata = tensor_metadata(column.row);
    return node;
}

}  // namespace

void to_arrow(Batch& batch, void* array, void* schema) {
    // Consumers believe that text is UTF-8.
    for (const BatchColumn& column : batch.columns) {
        if (!is_utf8(column.name))
            throw Error(SHF_E_UNSUPPORTED,
                        "a column's name is not UTF-8: \"" + escape(column.name) + "\"",
                        "leave it out of decode");
        const bool unchecked = column.name == key_column || column.name == url_column;
        for (uint64_t row = 0; unchecked && row < batch.rows; ++row)
            if (const std::string_view text = batch.text_of(column, row); !is_utf8(text))
                throw Error(SHF_E_UNSUPPORTED,
                            "a key or URL is not UTF-8: \"" + escape(text) + "\"",
                            "Arrow has no text of other bytes; rename the members");
    }
    Node root{.format = "+s",
              .name = {},
              .metadata = {},
              .length = static_cast<int64_t>(batch.rows),
              .buffers = {nullptr},
              .children = {}};
    for (const BatchColumn& column : batch.columns) {
        root.children.push_back(column_node(column, batch.rows));
        if (!column.shape_memory) continue;
        const int64_t ndim = column.row.ndim;
        const auto rows = static_cast<int64_t>(batch.rows);
        root.children.push_back(list_of("+w:" + std::to_string(ndim), column.name + ".shape", rows,
                                        {nullptr},
                                        numbers(DType::i64, "item", column.shapes(), rows * ndim)));
    }
    Guard<ArrowSchema> made_schema;
    make_schema(root, made_schema.value);
    ArrowArray made_array{};
    make_array(batch, root, made_array);
    std::memcpy(array, &made_array, sizeof made_array);
    const ArrowSchema taken = made_schema.take();
    std::memcpy(schema, &taken, sizeof taken);
}

}  // namespace shf
