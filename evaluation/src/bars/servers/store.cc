// A server of ours: values by keys, in memcached's text protocol. A thread for each connection; the table has parts with a shared
// mutex each. `shutdown` ends it.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct Part {
    std::shared_mutex mutex;
    std::unordered_map<std::string, std::string> values;
};

static std::array<Part, 16> parts;
static std::atomic<long> served{0};

static Part &part_of(const std::string &key) { return parts[std::hash<std::string>()(key) % parts.size()]; }

struct Connection {
    int socket;
    std::string unread;

    bool more() {
        char bytes[4096];
        ssize_t count = read(socket, bytes, sizeof bytes);
        if (count <= 0) return false;
        unread.append(bytes, (size_t)count);
        return true;
    }

    bool line(std::string &to) {
        size_t end;
        while ((end = unread.find("\r\n")) == std::string::npos)
            if (!more()) return false;
        to = unread.substr(0, end);
        unread.erase(0, end + 2);
        return true;
    }

    bool bytes(size_t count, std::string &to) {
        while (unread.size() < count)
            if (!more()) return false;
        to = unread.substr(0, count);
        unread.erase(0, count);
        return true;
    }

    bool say(const std::string &text) {
        for (size_t done = 0; done < text.size();) {
            ssize_t count = write(socket, text.data() + done, text.size() - done);
            if (count <= 0) return false;
            done += (size_t)count;
        }
        return true;
    }
};

static std::string answer(const std::string &command, const std::string &key, const std::string &value) {
    Part &part = part_of(key);
    if (command == "get") {
        std::shared_lock lock(part.mutex);
        auto found = part.values.find(key);
        if (found == part.values.end()) return "END\r\n";
        return "VALUE " + key + " 0 " + std::to_string(found->second.size()) + "\r\n" + found->second + "\r\nEND\r\n";
    }
    std::unique_lock lock(part.mutex);
    if (command == "set") {
        part.values[key] = value;
        return "STORED\r\n";
    }
    std::string &number = part.values[key];
    number = std::to_string(std::strtol(number.c_str(), nullptr, 10) + 1);
    return number + "\r\n";
}

static void serve(int socket, int listening) {
    Connection connection{socket, {}};
    std::string line;
    while (connection.line(line)) {
        std::istringstream words(line);
        std::string command, key, value;
        size_t flags = 0, time = 0, length = 0;
        words >> command >> key;
        if (command == "shutdown") {
            shutdown(listening, SHUT_RDWR);
            break;
        }
        if (command == "set") {
            words >> flags >> time >> length;
            if (!connection.bytes(length + 2, value)) break;
            value.resize(length);
        }
        served.fetch_add(1, std::memory_order_relaxed);
        if (!connection.say(answer(command, key, value))) break;
    }
    close(socket);
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    int listening = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)std::atoi(arguments[1]));
    if (bind(listening, (sockaddr *)&address, sizeof address) || listen(listening, 64)) return 1;
    std::vector<std::thread> threads;
    for (int socket; (socket = accept(listening, nullptr, nullptr)) >= 0;) {
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        threads.emplace_back(serve, socket, listening);
    }
    for (std::thread &thread : threads) thread.join();
    close(listening);
    std::printf("%ld\n", served.load());
}
