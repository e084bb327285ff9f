// The end of a silent renewal, in a hidden frame of the page: gives it the identity provider's answer.

parent.postMessage(location.search, location.origin);
