// Asks for a token of a caller. It stays with this tab.
import { useState } from "preact/hooks";
import { fetchApi, saveToken, type Status } from "./api";

export function Login({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    saveToken(token.trim());
    try {
      await fetchApi<Status>("status");
      onDone();
    } catch (failure) {
      saveToken(null);
      setError(failure instanceof Error ? failure.message : String(failure));
    }
  };
  return (
    <main class="login">
      <form onSubmit={(event) => void submit(event)}>
        <h1>mycc-tune</h1>
        <label>
          Token
          <input
            type="password"
            name="token"
            autocomplete="off"
            required
            autofocus
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        {error ? (
          <p class="notice bad" role="alert">
            {error}
          </p>
        ) : null}
        <button type="submit">Show</button>
        <p class="hint">A token of a caller with the role read, or the one in the server's --token-file. It is kept until this tab is closed.</p>
      </form>
    </main>
  );
}
