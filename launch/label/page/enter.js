// enter: posts the link of a first visit; the response sets the cookie. A GET, as of a preview, does not use it up.
const said = document.getElementById('said');
try {
  const token = new URLSearchParams(location.search).get('token');
  const response = await fetch('/api/enter', {method: 'POST', credentials: 'same-origin',
      headers: {'Content-Type': 'application/json'}, body: JSON.stringify({token})});
  if (response.ok) location.replace('/');
  else {
    const sentence = (await response.text()).trim();
    said.textContent = `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
  }
} catch {
  said.textContent = 'The server cannot be reached: load the page again.';
}
