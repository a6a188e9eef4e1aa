#include "cli/credentials.h"

#include "cli/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace cli {

namespace {

class Search {
  public:
    Search(const char* store, const char* help) : found_{store, help, {}} {}

    Search& environment(std::initializer_list<const char*> names) {
        for (const char* name : names)
            if (!variable(name).empty()) found_.places.emplace_back(name);
        return *this;
    }
    // The file that the variable names, else the one in the folder HOME.
    Search& file(const char* name, const std::string& in_home) {
        const std::string path = variable(name);
        return path.empty() ? home_file(in_home) : take(path);
    }
    // A file in the folder that the variable names, else the one in the folder HOME.
    Search& file_in(const char* name, const std::string& file, const std::string& in_home) {
        const std::string folder = variable(name);
        return folder.empty() ? home_file(in_home) : take(folder + "/" + file);
    }
    StoreCredentials found() { return std::move(found_); }

  private:
    Search& home_file(const std::string& path) {
        const std::string home = variable("HOME");
        if (!home.empty() && !path.empty()) take(home + "/" + path);
        return *this;
    }
    Search& take(const std::string& path) {
        if (::access(path.c_str(), R_OK) == 0) found_.places.push_back(path);
        return *this;
    }

    StoreCredentials found_;
};

}  // namespace

std::vector<StoreCredentials> store_credentials() {
    std::vector<StoreCredentials> made;
    made.push_back(
        Search("s3", "aws configure")
            .environment({"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
                          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                          "AWS_CONTAINER_CREDENTIALS_FULL_URI"})
            .file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")
            .file("AWS_CONFIG_FILE", ".aws/config")
            .found());
    made.push_back(Search("gs", "gcloud auth application-default login")
                       .file("GOOGLE_APPLICATION_CREDENTIALS", "")
                       .file_in("CLOUDSDK_CONFIG", "application_default_credentials.json",
                                ".config/gcloud/application_default_credentials.json")
                       .found());
    made.push_back(Search("az", "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY")
                       .environment({"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY",
                                     "AZURE_STORAGE_SAS_TOKEN", "AZURE_FEDERATED_TOKEN_FILE",
                                     "AZURE_CLIENT_SECRET", "IDENTITY_ENDPOINT"})
                       .found());
    Search hub("hf", "hf auth login");
    hub.environment({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
    if (variable("HF_TOKEN_PATH").empty() && variable("HF_HOME").empty())
        hub.file_in("XDG_CACHE_HOME", "huggingface/token", ".cache/huggingface/token");
    else if (variable("HF_TOKEN_PATH").empty())
        hub.file_in("HF_HOME", "token", "");
    else
        hub.file("HF_TOKEN_PATH", "");
    made.push_back(hub.found());
    made.push_back(Search("ais", "ais auth login")
                       .environment({"AIS_AUTHN_TOKEN"})
                       .file("AIS_AUTHN_TOKEN_FILE", ".config/ais/cli/auth.token")
                       .found());
    return made;
}

}  // namespace cli
