/**
 * A page as an application would have it: it begins a response in the background and follows it with an EventSource,
 * which connects again by itself. `?model=` and `?prompt=` say what is asked. Data attributes of the body tell how it went.
 */
export const RESPONSE_PAGE = `<!doctype html>
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Response</title>
<output></output>
<script>
  const output = document.querySelector('output')
  const { dataset } = document.body
  const numbers = []
  const types = []

  async function begin() {
    const { model, prompt } = Object.fromEntries(new URLSearchParams(location.search))
    const answer = await fetch('/v1/responses', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, input: prompt, background: true }),
    })
    if (!answer.ok) throw new Error('status ' + answer.status)
    const { id } = await answer.json()
    dataset.response = id
    return id
  }

  function follow(id) {
    const source = new EventSource('/v1/responses/' + id + '?stream=true')
    let opened = 0
    source.onopen = () => { dataset.opened = ++opened }
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) dataset.state = 'given up'
    }
    const listen = (type, use) => source.addEventListener(type, (event) => {
      const data = JSON.parse(event.data)
      numbers.push([data.sequence_number, Number(event.lastEventId)])
      types.push(type)
      use(data)
    })
    const nothing = () => {}
    for (const type of ['created', 'in_progress', 'output_item.added', 'content_part.added']) {
      listen('response.' + type, nothing)
    }
    listen('response.output_text.delta', ({ delta }) => { output.textContent += delta })
    for (const type of ['output_text.done', 'content_part.done', 'output_item.done']) {
      listen('response.' + type, nothing)
    }
    listen('response.completed', ({ response }) => {
      source.close()
      dataset.answer = response.output[0].content[0].text
      dataset.numbers = JSON.stringify(numbers)
      dataset.types = JSON.stringify(types)
      dataset.state = 'complete'
    })
  }

  begin().then(follow).catch((error) => { dataset.state = 'failed: ' + error.message })
</script>
`
