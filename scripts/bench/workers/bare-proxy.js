// The least that a proxy costs in this runtime: request and answer are forwarded unchanged.
const proxy = {
  fetch(request, environment) {
    const { pathname, search } = new URL(request.url)
    return fetch(new Request(environment.UPSTREAM + pathname + search, request))
  },
}

// biome-ignore lint/style/noDefaultExport: the runtime takes a Worker's handlers from its default export
export default proxy
