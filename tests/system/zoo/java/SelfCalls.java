// Servers that ask themselves: java SelfCalls NAME. A client of another process begins that.
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URL;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class SelfCalls {
    static int port;

    static void fetch(String path) throws IOException {
        try (InputStream answer = new URL("http://127.0.0.1:" + port + path).openStream()) {
            answer.readAllBytes();
        }
    }

    static void handle(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        try {
            if (path.equals("/outer")) fetch("/inner");
            if (path.equals("/outer-sleep")) fetch("/sleep");
            if (path.equals("/sleep")) Thread.sleep(600000);
        } catch (InterruptedException stop) {
            return;
        }
        exchange.sendResponseHeaders(200, -1);
        exchange.close();
    }

    static void beginClient(String path) throws IOException {
        new ProcessBuilder("curl", "-s", "http://127.0.0.1:" + port + path).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
    }

    static void serve(ExecutorService executor, int clients, String path) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        port = server.getAddress().getPort();
        server.setExecutor(executor);
        server.createContext("/", SelfCalls::handle);
        server.start();
        for (int i = 0; i < clients; i++) beginClient(path);
        System.out.println("ready");
    }

    static void answer(Socket socket) {
        try (socket) {
            byte[] line = new byte[100];
            int read = socket.getInputStream().read(line);
            if (read > 4 && line[5] == 'o') fetch("/inner");
            socket.getOutputStream().write("HTTP/1.0 200 OK\r\n\r\n".getBytes());
        } catch (IOException gone) {
            return;
        }
    }

    static void serveSockets(ExecutorService executor, int clients) throws IOException {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        port = server.getLocalPort();
        for (int i = 0; i < clients; i++) beginClient("/outer");
        System.out.println("ready");
        while (true) {
            Socket socket = server.accept();
            executor.submit(() -> answer(socket));
        }
    }

    public static void main(String[] arguments) throws IOException {
        switch (arguments[0]) {
            case "dispatcher": serve(null, 1, "/outer"); break;
            case "pool-of-two": serve(Executors.newFixedThreadPool(2), 4, "/outer"); break;
            case "sockets": serveSockets(Executors.newFixedThreadPool(2), 4); break;
            // What only looks so.
            case "inner-sleeps": serve(Executors.newFixedThreadPool(2), 1, "/outer-sleep"); break;
            case "behind-sleeper": serve(Executors.newFixedThreadPool(3), 2, "/outer-sleep"); break;
            case "idle": serve(Executors.newFixedThreadPool(2), 2, "/inner"); break;
        }
    }
}
