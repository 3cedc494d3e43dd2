// A device stream through Arrow C++ and back: imported, every batch validated in full, exported.

#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <cstring>
#include <memory>

namespace {

class Checked : public arrow::RecordBatchReader {
 public:
  explicit Checked(std::shared_ptr<arrow::RecordBatchReader> inner) : inner_(std::move(inner)) {}
  std::shared_ptr<arrow::Schema> schema() const override { return inner_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    ARROW_RETURN_NOT_OK(inner_->ReadNext(batch));
    return *batch ? (*batch)->ValidateFull() : arrow::Status::OK();
  }

 private:
  std::shared_ptr<arrow::RecordBatchReader> inner_;
};

char* words(const arrow::Status& status) { return status.ok() ? nullptr : strdup(status.ToString().c_str()); }

}  // namespace

// Returns NULL, or a message that says what went wrong.
extern "C" char* through_arrow(ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out) {
  auto reader = arrow::ImportDeviceRecordBatchReader(in);
  if (!reader.ok()) return words(reader.status());
  return words(arrow::ExportDeviceRecordBatchReader(std::make_shared<Checked>(*reader), out));
}
