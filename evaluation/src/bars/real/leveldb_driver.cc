// Threads that write, read and walk through one database whose tables are so small that the background thread is always at work.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include "leveldb/db.h"
#include "leveldb/write_batch.h"

static std::string key(int thread, int number) {
    char text[32];
    std::snprintf(text, sizeof text, "%02d-%08d", thread, number);
    return text;
}

static void check(const leveldb::Status &status) {
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
        std::_Exit(1);
    }
}

int main(int, char **arguments) {
    int threads = std::atoi(arguments[2]), rounds = std::atoi(arguments[3]);
    leveldb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 64 << 10;
    leveldb::DB *opened;
    check(leveldb::DB::Open(options, arguments[1], &opened));
    std::unique_ptr<leveldb::DB> db(opened);
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; thread++)
        all.emplace_back([&, thread] {
            std::string value;
            for (int i = 0; i < rounds; i++) {
                leveldb::WriteBatch batch;
                batch.Put(key(thread, i), std::string(40, 'a' + i % 26));
                if (i % 3 == 0)
                    batch.Delete(key(thread, i / 2));
                check(db->Write(leveldb::WriteOptions(), &batch));
                if (i % 16 == 8 && !db->Get(leveldb::ReadOptions(), key(thread, i), &value).ok())
                    std::_Exit(2);
                if (i % 1000 == 999) {
                    std::unique_ptr<leveldb::Iterator> at(db->NewIterator(leveldb::ReadOptions()));
                    int seen = 0;
                    for (at->SeekToFirst(); at->Valid(); at->Next())
                        seen++;
                    check(at->status());
                }
            }
        });
    for (auto &thread : all)
        thread.join();
    long entries = 0, bytes = 0;
    {
        std::unique_ptr<leveldb::Iterator> at(db->NewIterator(leveldb::ReadOptions()));
        for (at->SeekToFirst(); at->Valid(); at->Next())
            entries++, bytes += at->value()[0];
    }
    std::FILE *output = std::fopen("output", "w");
    std::fprintf(output, "%ld %ld\n", entries, bytes);
    std::fclose(output);
}
