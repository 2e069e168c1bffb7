/** A page as an application would have it: it calls its own origin, which adds the key. */
export const CHAT_PAGE = `<!doctype html>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Chat</title>
<form><input name="prompt"><button>Ask</button></form>
<output></output>
<script>
  const output = document.querySelector('output')
  document.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault()
    ask(new FormData(event.target).get('prompt')).then(
      () => { document.body.dataset.state = 'complete' },
      (error) => { document.body.dataset.state = 'failed: ' + error.message },
    )
  })

  // Lengths of the text as it was painted: what arrives together is painted together.
  let painted = 0
  requestAnimationFrame(function look() {
    const { length } = output.textContent
    if (length !== painted) output.dataset.painted = (output.dataset.painted ?? '') + ' ' + length
    painted = length
    requestAnimationFrame(look)
  })

  async function ask(content) {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'scripted-chat', stream: true, messages: [{ role: 'user', content }] }),
    })
    if (!response.ok) throw new Error('status ' + response.status)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let rest = ''
    let ended = false
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const frames = (rest + value).split('\\n\\n')
      rest = frames.pop()
      for (const frame of frames) ended = show(frame) || ended
    }
    if (!ended) throw new Error('no end of the stream')
  }

  function show(frame) {
    if (frame.startsWith(':')) return false
    if (frame.startsWith('event: error')) throw new Error(frame)
    const data = frame.replace(/^data: /, '')
    if (data === '[DONE]') return true
    output.textContent += JSON.parse(data).choices[0]?.delta.content ?? ''
    return false
  }
</script>
`
