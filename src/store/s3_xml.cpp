#include "store/s3_xml.h"

#include "core/error.h"
#include "store/xml_text.h"

#include <charconv>
#include <cstring>

namespace shf {

namespace {

// The only element of the document; names of namespaces are attributes here.
pugi::xml_node root_of(const pugi::xml_document& document) {
    return document.document_element();
}

[[noreturn]] void refuse_page(const char* cause) {
    throw Error(SHF_E_NET_PERMANENT, std::string("the list of the bucket cannot be used: ") + cause,
                "look at what serves this endpoint, or name the shards one by one");
}

// As forms are encoded: S3 writes a space as "+".
std::string form_decoded(const std::string& text) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '+') {
            result += ' ';
        } else if (text[i] == '%') {
            unsigned byte = 0;
            const char* const first = text.data() + i + 1;
            if (i + 2 >= text.size()) refuse_page("a key is not encoded right");
            const auto [end, error] = std::from_chars(first, first + 2, byte, 16);
            if (error != std::errc() || end != first + 2) refuse_page("a key is not encoded right");
            result += static_cast<char>(byte);
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

bool digits(std::string_view text, size_t at, size_t count, int64_t& value) {
    if (at + count > text.size()) return false;
    const char* const first = text.data() + at;
    uint32_t parsed = 0;
    const auto [end, error] = std::from_chars(first, first + count, parsed);
    value = parsed;
    return error == std::errc() && end == first + count;
}

// Days since 1970 of a day of the Gregorian calendar (Howard Hinnant's days_from_civil).
int64_t days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2 ? 1 : 0;
    const int64_t era = year / 400, of_era = year - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

}  // namespace

S3Fault parse_s3_fault(std::string_view body) {
    pugi::xml_document document;
    if (!load_xml(document, body)) return {};
    pugi::xml_node root = root_of(document);
    S3Fault fault;
    if (std::strcmp(root.name(), "ErrorResponse") == 0) {  // of STS
        fault.request_id = xml_text(root.child("RequestId"));
        root = root.child("Error");
    }
    if (std::strcmp(root.name(), "Error") != 0) return {};
    fault.code = xml_text(root.child("Code"));
    fault.message = xml_text(root.child("Message"));
    if (fault.request_id.empty()) fault.request_id = xml_text(root.child("RequestId"));
    fault.host_id = xml_text(root.child("HostId"));
    fault.region = xml_text(root.child("Region"));
    fault.endpoint = xml_text(root.child("Endpoint"));
    fault.details = xml_text(root.child("Details"));
    return fault;
}

StorePage parse_s3_page(std::string_view body) {
    pugi::xml_document document;
    if (!load_xml(document, body)) refuse_page("it is not whole, or no XML");
    const pugi::xml_node root = root_of(document);
    if (std::strcmp(root.name(), "ListBucketResult") != 0) refuse_page("it is something else");
    const std::string truncated = xml_text(root.child("IsTruncated"));
    if (truncated != "true" && truncated != "false")
        refuse_page("it does not say whether it is the last page");
    const std::string encoding = xml_text(root.child("EncodingType"));
    if (!encoding.empty() && encoding != "url") refuse_page("its keys are encoded in another way");
    StorePage page;
    for (const pugi::xml_node object : root.children("Contents")) {
        std::string key = xml_text(object.child("Key"));
        if (encoding == "url") key = form_decoded(key);
        if (key.empty()) refuse_page("an object without a key");
        if (key.find('\0') != key.npos) refuse_page("a key with a NUL byte");
        page.keys.push_back(std::move(key));
    }
    if (const pugi::xml_node count = root.child("KeyCount"))
        if (xml_text(count) != std::to_string(page.keys.size()))
            refuse_page("it has another number of keys than it says");
    if (truncated == "true") {
        page.next = xml_text(root.child("NextContinuationToken"));
        if (page.next.empty()) refuse_page("it does not say where the next page is");
    }
    return page;
}

S3UploadPage parse_s3_uploads(std::string_view body) {
    pugi::xml_document document;
    if (!load_xml(document, body)) refuse_page("it is not whole, or no XML");
    const pugi::xml_node root = root_of(document);
    if (std::strcmp(root.name(), "ListMultipartUploadsResult") != 0)
        refuse_page("it is something else");
    const std::string encoding = xml_text(root.child("EncodingType"));
    if (!encoding.empty() && encoding != "url") refuse_page("its keys are encoded in another way");
    const auto key_in = [&](const pugi::xml_node node) {
        std::string key = xml_text(node);
        return encoding == "url" ? form_decoded(key) : key;
    };
    S3UploadPage page;
    for (const pugi::xml_node upload : root.children("Upload")) {
        S3PendingUpload found{.key = key_in(upload.child("Key")),
                              .number = xml_text(upload.child("UploadId"))};
        if (found.key.empty() || found.number.empty()) refuse_page("an upload without a name");
        page.uploads.push_back(std::move(found));
    }
    page.more = xml_text(root.child("IsTruncated")) == "true";
    if (page.more) {
        page.next = {.key = key_in(root.child("NextKeyMarker")),
                     .number = xml_text(root.child("NextUploadIdMarker"))};
        if (page.next.key.empty()) refuse_page("it does not say where the next page is");
    }
    return page;
}

std::string parse_s3_upload_id(std::string_view body) {
    pugi::xml_document document;
    std::string id;
    if (load_xml(document, body)) {
        const pugi::xml_node root = root_of(document);
        if (std::strcmp(root.name(), "InitiateMultipartUploadResult") == 0)
            id = xml_text(root.child("UploadId"));
    }
    if (id.empty())
        throw Error(SHF_E_NET_PERMANENT, "the server does not begin an upload in parts",
                    "look at what serves this endpoint");
    return id;
}

std::string s3_part_xml(const std::string& number, const std::string& tag, const std::string& crc) {
    if (tag.empty() || tag.find_first_of("<>&") != tag.npos)
        throw Error(SHF_E_NET_PERMANENT, "the server gives no tag for a part",
                    "look at what serves this endpoint");
    if (crc.find_first_of("<>&") != crc.npos)
        throw Error(SHF_E_USAGE, "a checksum of a part is damaged", "give it as it was made");
    return "<Part><PartNumber>" + number + "</PartNumber><ETag>" + tag + "</ETag><ChecksumCRC32>" +
           crc + "</ChecksumCRC32></Part>";
}

TemporaryKeys parse_sts_keys(std::string_view body) {
    pugi::xml_document document;
    TemporaryKeys result;
    if (load_xml(document, body)) {
        for (const pugi::xml_node outer : root_of(document).children()) {
            const pugi::xml_node keys = outer.child("Credentials");
            if (!keys) continue;
            result.value = {.access_key = xml_text(keys.child("AccessKeyId")),
                            .secret_key = xml_text(keys.child("SecretAccessKey")),
                            .session_token = xml_text(keys.child("SessionToken"))};
            result.expires = parse_time(xml_text(keys.child("Expiration")));
        }
    }
    if (result.value.access_key.empty() || result.value.secret_key.empty())
        throw Error(SHF_E_AUTH, "the answer of STS has no credentials",
                    "look at the endpoint of STS: AWS_ENDPOINT_URL_STS");
    return result;
}

std::optional<int64_t> parse_time(std::string_view text) {
    int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':' || !digits(text, 0, 4, year) ||
        !digits(text, 5, 2, month) || !digits(text, 8, 2, day) || !digits(text, 11, 2, hour) ||
        !digits(text, 14, 2, minute) || !digits(text, 17, 2, second) || month < 1 || month > 12 ||
        day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60)
        return std::nullopt;
    int64_t result = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    size_t at = 19;
    if (text[at] == '.') at = std::min(text.find_first_not_of("0123456789", at + 1), text.size());
    const std::string_view zone = text.substr(at);
    if (zone == "Z") return result;
    int64_t hours = 0, minutes = 0;
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':' ||
        !digits(zone, 1, 2, hours) || !digits(zone, 4, 2, minutes))
        return std::nullopt;
    const int64_t offset = (hours * 60 + minutes) * 60;
    return zone[0] == '+' ? result - offset : result + offset;
}

}  // namespace shf
