// Shows an OpenAPI document of this gateway with Redoc, which redoc.js defines.
const { document: address, needsToken } = document.body.dataset
const status = document.getElementById('status')
const form = document.getElementById('sign-in')
const dark = window.matchMedia('(prefers-color-scheme: dark)')
let shown = null

if (needsToken === undefined) load({})
else form.addEventListener('submit', signIn)
dark.addEventListener('change', show)

function signIn(event) {
  event.preventDefault()
  const field = document.getElementById('token')
  load({ authorization: `Bearer ${field.value.trim()}` })
  field.value = ''
}

async function load(headers) {
  status.textContent = 'Loading the reference.'
  try {
    const answer = await fetch(address, { headers, credentials: 'omit', cache: 'no-cache' })
    if (answer.status === 401) {
      status.textContent = 'This is not the administration token.'
      return
    }
    if (!answer.ok) throw new Error(`the gateway answered ${answer.status}`)
    shown = await answer.json()
    if (form !== null) form.hidden = true
    show()
  } catch (error) {
    status.textContent = `The reference could not be loaded: ${error.message}.`
  }
}

function show() {
  if (shown === null) return
  const options = {
    theme: dark.matches ? DARK : LIGHT,
    nativeScrollbars: true,
    hideDownloadButton: true,
    expandResponses: '200,201,202',
    sortRequiredPropsFirst: true,
    generatedPayloadSamplesMaxDepth: 4,
  }
  const element = document.getElementById('reference')
  window.Redoc.init(structuredClone(shown), options, element, (error) => {
    status.textContent = error ? `The reference could not be shown: ${error.message}.` : ''
  })
}

const TYPOGRAPHY = {
  fontFamily: 'system-ui, sans-serif',
  headings: { fontFamily: 'system-ui, sans-serif' },
  code: { fontFamily: 'ui-monospace, monospace' },
}

const LIGHT = { typography: TYPOGRAPHY, colors: { primary: { main: '#08479e' } } }

const DARK = {
  typography: {
    ...TYPOGRAPHY,
    code: { ...TYPOGRAPHY.code, color: '#ff9b8a', backgroundColor: '#22272f' },
    links: { color: '#82b4ff' },
  },
  colors: {
    // Text on both white and the background of the page.
    primary: { main: '#4a8af0' },
    success: { main: '#57c785' },
    warning: { main: '#e3b341', contrastText: '#14171c' },
    error: { main: '#ff8b80' },
    text: { primary: '#e3e6ea', secondary: '#a3abb5' },
    border: { dark: '#343b45', light: '#2a3039' },
    responses: {
      success: { color: '#57c785', backgroundColor: '#16291f' },
      error: { color: '#ff8b80', backgroundColor: '#331d1d' },
      redirect: { color: '#e3b341', backgroundColor: '#332b17' },
      info: { color: '#82b4ff', backgroundColor: '#182539' },
    },
  },
  schema: { nestedBackground: '#1b1f26', typeNameColor: '#a3abb5', typeTitleColor: '#a3abb5' },
  sidebar: { backgroundColor: '#1b1f26', textColor: '#e3e6ea', activeTextColor: '#82b4ff' },
  rightPanel: {
    backgroundColor: '#0d1014',
    textColor: '#e3e6ea',
    servers: {
      overlay: { backgroundColor: '#1b1f26', textColor: '#e3e6ea' },
      url: { backgroundColor: '#343b45' },
    },
  },
  codeBlock: { backgroundColor: '#1b1f26' },
  fab: { backgroundColor: '#343b45', color: '#e3e6ea' },
}
